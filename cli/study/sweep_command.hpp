// `temper sweep`: runs a grid of configurations, simulated or real; prints a table, writes CSV and
// plots (study/sweep/sweep.hpp).
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
  std::string preset;              ///< File with more of `over`, `any` and `sets`; empty: none.
  std::vector<std::string> over;   ///< "key=value,value"
  std::vector<std::string> any;    ///< The same.
  std::vector<std::string> seeds;  ///< Empty: the configured seed.
  bool fit = false;
  std::uint64_t steps = 0;   ///< Steps per run; 0: as configured.
  std::uint64_t steady = 0;  ///< Steady-state steps; 0: whole runs.
  double target_reward = 0.9;
  int threads = 0;      ///< Simulated runs in parallel; 0: one per core.
  std::string out;      ///< Folder for tables, plots and real runs; empty: runs/sweep-NAME-TIME for
                        ///< real runs, no files for others.
  bool resume = false;  ///< Keep finished real runs.
  bool json = false;
};

/// Returns the exit code: 0 if no run failed (a combination that a rule forbids does not count),
/// 130 if the user stopped it. Prints the table to `out`, progress and errors to `err`.
int run_sweep(SweepOptions command, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper sweep`.
Handler sweep_command(Flags& flags);

}  // namespace temper::cli
