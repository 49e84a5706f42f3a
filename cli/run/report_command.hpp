// `temper report RUN`: the summary of a run, computed from its folder.
#pragma once

#include "cli/command/command_line.hpp"
#include "cli/view/canvas.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct ReportOptions {
  std::string run;  ///< Folder of the run.
  enum class Format { Text, Json } format = Format::Text;
  std::size_t width = 160;  ///< Columns of the card map.
  Colours colours = Colours::Off;
  std::vector<std::string> required{};  ///< Conditions on summary.json: "reward.last>=0.9".
};

/// Returns the exit code: 0 if the report was printed, whatever the run's outcome; 3 if a required
/// condition does not hold; 2 if a condition names no number of summary.json. Text: tables, and the
/// card map of a simulated run. Json: summary.json, byte for byte.
int run_report(const ReportOptions& options, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper report`.
Handler report_command(Flags& flags);

}  // namespace temper::cli
