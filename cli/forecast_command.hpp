// `temper predict`: what local runs would do, from a calibration of this machine; with --check they
// are run afterwards and held against it.
#pragma once

#include "cli/measure_command.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct PredictCommand {
  std::string config;
  std::vector<std::string> sets;
  std::string calibration = kMachineModel;
  std::vector<std::string> over;
  int check = 0;  ///< Real runs of each.
  int threads = 0;
  std::string out;
  bool json = false;
};

/// 0 only if all could be predicted (and run).
int run_predict(const PredictCommand& command, std::ostream& out, std::ostream& err);

}  // namespace temper::cli
