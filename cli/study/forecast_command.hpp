// `temper forecast`: what runs on this machine would do, from a calibration of it; with --check
// they are run afterwards and held against it.
#pragma once

#include "cli/command/command_line.hpp"
#include "cli/study/measure_command.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct ForecastOptions {
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
int run_forecast(const ForecastOptions& command, std::ostream& out, std::ostream& err);

/// `temper forecast`: its flags, and what it does.
Handler forecast_command(Flags& flags);

}  // namespace temper::cli
