// `temper forecast`: predicts runs on this machine from its calibration. With --check, it also runs
// them and compares.
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
  int check = 0;  ///< Real runs per configuration.
  int threads = 0;
  std::string out;
  bool json = false;
};

/// Returns the exit code: 0 only if all configurations were predicted (and run).
int run_forecast(const ForecastOptions& command, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper forecast`.
Handler forecast_command(Flags& flags);

}  // namespace temper::cli
