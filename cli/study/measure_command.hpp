// `temper measure`: measures what the engines of a pipeline, their messages and processes
// take on this machine, and stores it for forecasts of runs on it (docs/forecast.md).
#pragma once

#include "cli/command/command_line.hpp"
#include "study/machine/calibration.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

/// Where a calibration is looked for if none is named: beside the run folders, as they are.
inline constexpr const char* kMachineModel = "runs/machine.yaml";

struct MeasureOptions {
  std::string config;
  std::vector<std::string> sets;
  std::string out = kMachineModel;
  bool json = false;
};

/// 0 only if it was measured and written.
int run_measure(const MeasureOptions& options, std::ostream& out, std::ostream& err);

/// `temper measure`: its flags, and what it does.
Handler measure_command(Flags& flags);

}  // namespace temper::cli
