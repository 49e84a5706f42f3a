// Computes the figures of a run from its events.log, with the code that computes them during a run.
#pragma once

#include "orchestrator/metrics/summary.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <filesystem>

namespace temper::orchestrator {

struct RecordedRun {
  Summary summary;
  SchedulerConfig config;
  /// How the log is damaged; the figures cover the part before. Empty: intact.
  std::string damage;
  std::string torn;   ///< How the end is torn: the last record is incomplete. Empty: it is whole.
  bool over = false;  ///< Whether the log has the end of the run.
  /// Why config.yaml cannot be read; its figures are then missing. Empty: it was read.
  std::string config_issue{};
};

/// Reads events.log, and name, seed and hardware from config.yaml if it can be read. Error: no log.
Result<RecordedRun> read_run(const std::filesystem::path& run_dir);

/// Rebuilds the files of recorder.hpp from events.log, as the run writes them. Error: the log is
/// damaged, or a file cannot be written.
Status rebuild_outputs(const std::filesystem::path& run_dir);

/// Use of the cards, in the same words everywhere: "85 % busy   MFU 10.4 %   slots 20 % filled",
/// with a hint where busy alone misleads.
std::string use_text(const Summary& summary);
/// "price 12.3 (1.2M trained tokens per unit)   energy 4.5 kWh (...)".
std::string cost_text(const CostSummary& cost);
/// Whether the start took so much of the run that rates over the whole run are misleading.
bool starting_matters(const Summary& summary);

/// "reward 0.150 -> 0.930 in 9.87 simulated hours": means of the first and of the last steps.
std::string learning_text(const Summary& summary);

/// Predicted seconds of the states of a role switch, by name.
using PredictedStates = std::map<std::string, double>;

/// The figures as a page of text, with the predictions.
std::string summary_text(const Summary& summary, const PredictedStates& predicted = {});

}  // namespace temper::orchestrator
