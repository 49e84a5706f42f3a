// `temper compare`: staleness policies on the same simulated run
// (orchestrator/explore/compare.hpp).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace temper::orchestrator {

struct CompareCommand {
  std::string config;
  std::vector<std::string> sets;
  std::vector<std::string> policies;                ///< By name; empty: all.
  std::vector<std::string> etas = {"1", "2", "4"};  ///< Bounds.
  std::uint64_t steps = 0;                          ///< Updates of each run; 0: as configured.
  int threads = 0;                                  ///< 0: as many as there are cores.
  std::string out;                                  ///< Folder for compare.csv and compare.svg.
  bool json = false;
};

/// The exit code of the command. The table goes to `out`, progress and what is wrong to `err`.
int run_compare(const CompareCommand& command, std::ostream& out, std::ostream& err);

}  // namespace temper::orchestrator
