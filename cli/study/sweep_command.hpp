// `temper sweep`: simulates a grid of configurations; prints a table, writes CSV and a plot
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
  std::uint64_t steps = 0;  ///< Steady-state steps; 0: as configured.
  int threads = 0;          ///< 0: one per core.
  std::string csv, plot;    ///< Files to write; empty: none.
  std::string title, x_label;
};

/// Returns the exit code. Prints the table to `out`, progress and errors to `err`.
int run_sweep(const SweepOptions& command, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper sweep`.
Handler sweep_command(Flags& flags);

}  // namespace temper::cli
