// `temper faults`: what failures of simulated hardware cost (study/faults/faults.hpp).
#pragma once

#include "cli/command/command_line.hpp"

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct FaultsCommand {
  std::string config;
  std::vector<std::string> sets;
  double days = 10;
  std::vector<std::string> every;   ///< Numbers of updates.
  std::vector<std::string> spares;  ///< Numbers of hosts.
  std::uint64_t seeds = 2;
  std::uint64_t weight = 1;
  int threads = 0;   ///< 0: as many as there are cores.
  std::string plot;  ///< An SVG file; empty: none.
  bool json = false;
};

/// The exit code of the command. The table goes to `out`, progress and what is wrong to `err`.
int run_faults(const FaultsCommand& command, std::ostream& out, std::ostream& err);

/// `temper faults`: its flags, and what it does.
Handler faults_command(Flags& flags);

}  // namespace temper::cli
