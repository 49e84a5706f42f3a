// `temper tune`: the best configuration of a pipeline, before it runs
// (study/search/tune.hpp).
#pragma once

#include "cli/measure_command.hpp"

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct TuneCommand {
  std::string config;
  std::vector<std::string> sets;
  std::vector<std::string> modes;  ///< Empty: all.
  std::vector<std::string> etas{"0", "1", "2", "4"};
  std::vector<std::string> vary;
  std::string objective = "throughput";
  std::string curve;
  double max_staleness = -1, min_tokens_per_s = -1;  ///< Below 0: not given.
  std::string max_memory;
  std::string calibration = kMachineModel;  ///< Of local hardware.
  int effort = 64;
  std::uint64_t steps = 20;
  int threads = 0;  ///< 0: as many as there are cores.
  std::string out;  ///< Folder; empty: runs/tune-TIME.
  bool json = false;
};

/// The exit code of the command. The table goes to `out`, progress and what is wrong to `err`.
int run_tune(const TuneCommand& command, std::ostream& out, std::ostream& err);

}  // namespace temper::cli
