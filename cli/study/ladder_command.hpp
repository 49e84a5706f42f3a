// `temper ladder`: compares deployments on the same simulated cards, all tuned with the same effort
// (study/search/deployments.hpp).
#pragma once

#include "cli/command/command_line.hpp"

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct LadderOptions {
  std::string config;
  std::vector<std::string> sets;
  std::vector<std::string> lengths;  ///< "mean:cap:p99/median"; empty: the defaults.
  std::vector<std::string> batches;  ///< In groups; empty: the batch of CONFIG.
  std::vector<std::string> rungs;    ///< Ids of deployments; empty: all.
  int effort = 40;                   ///< Runs per search; a cell has two searches.
  std::uint64_t steps = 20;          ///< Steady-state steps that the figures cover.
  int threads = 0;                   ///< 0: one per core.
  bool quick = false;                ///< One length distribution, little effort.
  std::string out;                   ///< Folder for ladder.csv and the winning configurations.
  bool json = false;
};

/// Returns the exit code. Prints tables to `out`, progress and errors to `err`.
int run_ladder(const LadderOptions& command, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper ladder`.
Handler ladder_command(Flags& flags);

}  // namespace temper::cli
