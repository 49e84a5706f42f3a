// `temper whatif RUN --set key=value`: a recorded run decided again under other settings.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct WhatifCommand {
  std::string run;
  std::vector<std::string> sets;
  std::string calibration;  ///< Empty: the run's own times alone.
  bool json = false;
};

/// 0 only if there is an answer.
int run_whatif(const WhatifCommand& command, std::ostream& out, std::ostream& err);

}  // namespace temper::cli
