// `temper report RUN`: what a run came to, from its folder.
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
  std::size_t width = 160;  ///< Of the map of cards.
  Colours colours = Colours::Off;
  std::vector<std::string> required{};  ///< Of summary.json: "reward.last>=0.9".
};

/// The exit code: 0 if the report could be made, whatever the run's outcome; 3 where something
/// required of it does not hold, 2 where that is not said of a number in summary.json. Text:
/// tables, and of a simulated run the map of its cards; Json: summary.json again, byte for byte.
int run_report(const ReportOptions& options, std::ostream& out, std::ostream& err);

/// `temper report`: its flags, and what it does.
Handler report_command(Flags& flags);

}  // namespace temper::cli
