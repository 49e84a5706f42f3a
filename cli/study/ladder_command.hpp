// `temper ladder`: what each way to run RL post-training gives on the same simulated cards, all
// tuned with the same effort (study/search/deployments.hpp).
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
  std::vector<std::string> lengths;  ///< "mean:cap:p99/median"; empty: the default ones.
  std::vector<std::string> rungs;    ///< By id; empty: all.
  int effort = 40;                   ///< Runs of each of a cell's two searches.
  std::uint64_t steps = 20;          ///< Steady updates that the figures are of.
  int threads = 0;                   ///< 0: as many as there are cores.
  bool quick = false;                ///< One distribution, a little effort.
  std::string out;                   ///< Folder for ladder.csv and the winning configurations.
  bool json = false;
};

/// The exit code of the command. Tables go to `out`, progress and what is wrong to `err`.
int run_ladder(const LadderOptions& command, std::ostream& out, std::ostream& err);

/// `temper ladder`: its flags, and what it does.
Handler ladder_command(Flags& flags);

}  // namespace temper::cli
