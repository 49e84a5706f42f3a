// `temper compare`: staleness policies on the same run (study/compare/compare.hpp).
#pragma once

#include "cli/command/command_line.hpp"

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct CompareOptions {
  std::string config;
  std::vector<std::string> sets;
  std::vector<std::string> policies;                ///< By name; empty: all.
  std::vector<std::string> etas = {"1", "2", "4"};  ///< Bounds.
  std::vector<std::string> seeds;                   ///< Empty: the configuration's.
  std::vector<std::string> vary;                    ///< "key=value,value"
  std::uint64_t steps = 0;                          ///< Updates of each run; 0: as configured.
  double target_reward = 0.9;
  int threads = 0;  ///< Of runs in this process; 0: as many as there are cores.
  std::string out;  ///< Folder for tables, plots and real runs; empty: runs/compare-NAME-TIME for
                    ///< real runs, no files for others.
  bool resume = false;  ///< Real runs that are whole are not run again.
  bool json = false;
};

/// The exit code of the command: 0 only if no run failed (one that a rule forbids is none), 130 if
/// the user stopped one. The table goes to `out`, progress and what is wrong to `err`.
int run_compare(const CompareOptions& command, std::ostream& out, std::ostream& err);

/// `temper compare`: its flags, and what it does.
Handler compare_command(Flags& flags);

}  // namespace temper::cli
