// `temper whatif RUN --set key=value`: predicts a recorded run under other settings.
#pragma once

#include "cli/command/command_line.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct WhatifOptions {
  std::string run;
  std::vector<std::string> sets;
  std::string calibration;  ///< Empty: only the run's own times.
  bool json = false;
  bool keep = false;  ///< Store the prediction in the run folder, for its web page.
};

/// Returns the exit code: 0 only if there is a prediction.
int run_whatif(const WhatifOptions& command, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper whatif`.
Handler whatif_command(Flags& flags);

}  // namespace temper::cli
