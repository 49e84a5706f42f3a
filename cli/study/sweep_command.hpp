// `temper sweep`: a grid of simulated configurations as a table, CSV or plot
// (study/simulate/sweep.hpp).
#pragma once

#include "cli/command/command_line.hpp"

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct SweepOptions {
  std::string config;
  std::vector<std::string> sets;
  std::vector<std::string> over;
  std::vector<std::string> any;
  bool fit = false;
  std::uint64_t steps = 0;  ///< Steady updates; 0: `steps` as configured.
  int threads = 0;          ///< 0: as many as there are cores.
  std::string csv, plot;    ///< Files to write.
  std::string title, x_label;
};

/// The exit code of the command. The table goes to `out`, progress and what is wrong to `err`.
int run_sweep(const SweepOptions& command, std::ostream& out, std::ostream& err);

/// `temper sweep`: its flags, and what it does.
Handler sweep_command(Flags& flags);

}  // namespace temper::cli
