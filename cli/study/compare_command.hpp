// `temper compare`: staleness rules on the same pipeline (study/compare/compare.hpp).
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
  std::vector<std::string> policies;                ///< Names of staleness rules; empty: all.
  std::vector<std::string> etas = {"1", "2", "4"};  ///< Staleness bounds.
  std::vector<std::string> seeds;                   ///< Empty: the configured seed.
  std::vector<std::string> vary;                    ///< "key=value,value"
  std::uint64_t steps = 0;                          ///< Steps per run; 0: as configured.
  double target_reward = 0.9;
  int threads = 0;  ///< Simulated runs in parallel; 0: one per core.
  std::string out;  ///< Folder for tables, plots and real runs; empty: runs/compare-NAME-TIME for
                    ///< real runs, no files for others.
  bool resume = false;  ///< Keep finished real runs.
  bool json = false;
};

/// Returns the exit code: 0 if no run failed (a combination that a rule forbids does not count),
/// 130 if the user stopped it. Prints the table to `out`, progress and errors to `err`.
int run_compare(const CompareOptions& command, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper compare`.
Handler compare_command(Flags& flags);

}  // namespace temper::cli
