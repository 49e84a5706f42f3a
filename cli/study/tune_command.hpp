// `temper tune`: searches the best configuration of a pipeline
// (study/search/tune.hpp).
#pragma once

#include "cli/command/command_line.hpp"
#include "cli/study/measure_command.hpp"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace temper::cli {

struct TuneOptions {
  std::string config;
  std::vector<std::string> sets;
  std::vector<std::string> modes;  ///< Empty: all.
  std::vector<std::string> etas{"0", "1", "2", "4"};
  std::vector<std::string> vary, only;
  std::string objective;  ///< Empty: reward if there is a curve of this task.
  std::string curve;
  std::string lengths;  ///< Run folder with response lengths.
  std::optional<double> max_staleness, min_tokens_per_s;
  std::string max_memory;
  std::string calibration = kMachineModel;  ///< For local hardware.
  int effort = 64;
  std::uint64_t steps = 20;
  int threads = 0;  ///< 0: one per core.
  std::string out;  ///< Output folder; empty: runs/tune-TIME.
  bool json = false;
  bool keep = false;  ///< Store the gain in the run of this config.yaml, for its web page.
};

/// Returns the exit code. Prints the table to `out`, progress and errors to `err`.
int run_tune(const TuneOptions& command, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper tune`.
Handler tune_command(Flags& flags);

}  // namespace temper::cli
