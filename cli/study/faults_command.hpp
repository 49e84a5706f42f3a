// `temper faults`: the expected loss to failures of simulated hardware (study/faults/faults.hpp).
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
  std::vector<std::string> every;   ///< Checkpoint intervals in steps.
  std::vector<std::string> spares;  ///< Numbers of spare hosts.
  std::uint64_t seeds = 2;
  std::uint64_t weight = 1;
  int threads = 0;   ///< 0: one per core.
  std::string plot;  ///< SVG file; empty: none.
  bool json = false;
};

/// Returns the exit code. Prints the table to `out`, progress and errors to `err`.
int run_faults(const FaultsCommand& command, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper faults`.
Handler faults_command(Flags& flags);

}  // namespace temper::cli
