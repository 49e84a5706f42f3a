// `temper report RUN`: the figures of a run from its events.log, computed by the code that computed
// them while it ran.
#pragma once

#include "orchestrator/metrics/summary.hpp"

#include <filesystem>
#include <iosfwd>

namespace temper::orchestrator {

struct ReportOptions {
  std::string run;  ///< Folder of the run.
  enum class Format { Text, Json } format = Format::Text;
};

/// Reads events.log; name, seed and hardware from config.yaml, where there is one. Errors: no log,
/// or a record that is whole but wrong.
Result<Summary> read_summary(const std::filesystem::path& run_dir);

/// "reward 0.150 -> 0.930 in 9.87 simulated hours": the means of the first and last updates.
std::string learning_text(const Summary& summary);

/// Seconds that were predicted for states of a role switch, by name.
using PredictedStates = std::map<std::string, double>;

/// The figures as a page of text, predictions beside them.
std::string summary_text(const Summary& summary, const PredictedStates& predicted = {});

/// The exit code: 0 if the report could be made, whatever the run's outcome. Text: tables; Json:
/// summary.json again, byte for byte.
int run_report(const ReportOptions& options, std::ostream& out, std::ostream& err);

}  // namespace temper::orchestrator
