// `temper tune`: the best configuration of a pipeline, before it runs
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
  std::string objective;  ///< Empty: a reward where a curve of this task is at hand.
  std::string curve;
  std::string lengths;  ///< A run's folder.
  std::optional<double> max_staleness, min_tokens_per_s;
  std::string max_memory;
  std::string calibration = kMachineModel;  ///< Of local hardware.
  int effort = 64;
  std::uint64_t steps = 20;
  int threads = 0;  ///< 0: as many as there are cores.
  std::string out;  ///< Folder; empty: runs/tune-TIME.
  bool json = false;
  bool keep = false;  ///< Write the gain beside the run whose config.yaml this is, for its page.
};

/// The exit code of the command. The table goes to `out`, progress and what is wrong to `err`.
int run_tune(const TuneOptions& command, std::ostream& out, std::ostream& err);

/// `temper tune`: its flags, and what it does.
Handler tune_command(Flags& flags);

}  // namespace temper::cli
