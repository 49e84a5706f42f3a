// `temper measure`: measures a pipeline's engines, messages and processes on this machine, for
// forecasts of runs on it (docs/how-to/forecast.md).
#pragma once

#include "cli/command/command_line.hpp"
#include "study/machine/calibration.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

/// Default path of the calibration: beside the run folders.
inline constexpr const char* kMachineModel = "runs/machine.yaml";

struct MeasureOptions {
  std::string config;
  std::vector<std::string> sets;
  std::string out = kMachineModel;
  bool json = false;
};

/// Returns the exit code: 0 only if the measurements were made and written.
int run_measure(const MeasureOptions& options, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper measure`.
Handler measure_command(Flags& flags);

}  // namespace temper::cli
