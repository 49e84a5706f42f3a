// The figures of a run from its events.log, computed by the code that computed them while it ran.
#pragma once

#include "orchestrator/metrics/summary.hpp"

#include <filesystem>

namespace temper::orchestrator {

struct RecordedRun {
  Summary summary;
  SchedulerConfig config;
  std::string damage;  ///< Of the log, in words; the figures are of what comes before it.
  std::string torn;    ///< Of its end, in words: the last record was being written. Or empty.
  bool over = false;   ///< The log has the end of the run.
};

/// Reads events.log; name, seed and hardware from config.yaml, where there is one. Error: no log.
Result<RecordedRun> read_run(const std::filesystem::path& run_dir);

/// Makes the files of recorder.hpp anew from events.log, as the run made them. Error: the log is
/// damaged, or a file cannot be written.
Status rebuild_outputs(const std::filesystem::path& run_dir);

/// How the cards were used, named alike wherever it is shown: "85 % busy   MFU 10.4 %   slots 20 %
/// filled"; and where busy alone misleads, what it means.
std::string use_text(const Summary& summary);
/// Whether so much of the run was its start that rates over the whole run tell little.
bool starting_matters(const Summary& summary);

/// "reward 0.150 -> 0.930 in 9.87 simulated hours": the means of the first and last updates.
std::string learning_text(const Summary& summary);

/// Seconds that were predicted for states of a role switch, by name.
using PredictedStates = std::map<std::string, double>;

/// The figures as a page of text, predictions beside them.
std::string summary_text(const Summary& summary, const PredictedStates& predicted = {});

}  // namespace temper::orchestrator
