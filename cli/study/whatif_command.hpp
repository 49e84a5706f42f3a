// `temper whatif RUN --set key=value`: a recorded run decided again under other settings.
#pragma once

#include "cli/command/command_line.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct WhatifOptions {
  std::string run;
  std::vector<std::string> sets;
  std::string calibration;  ///< Empty: the run's own times alone.
  bool json = false;
  bool keep = false;  ///< Write the answer beside the run, for its page.
};

/// 0 only if there is an answer.
int run_whatif(const WhatifOptions& command, std::ostream& out, std::ostream& err);

/// `temper whatif`: its flags, and what it does.
Handler whatif_command(Flags& flags);

}  // namespace temper::cli
