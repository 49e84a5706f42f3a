// `temper ablation`: the predicted gain of each MoE training mechanism, beside the published gain
// (sim_hw/ablation/ablation.hpp).
#pragma once

#include "cli/command/command_line.hpp"

#include <iosfwd>
#include <string>

namespace temper::cli {

struct AblationOptions {
  std::string expert_loads;  ///< CSV of recorded loads; empty: generated.
  std::string samples;       ///< CSV of recorded document lengths; empty: generated.
  bool json = false;
  bool markdown = false;  ///< Print the table of docs/reports/moe-mechanisms.md.
};

/// Returns the exit code.
int run_ablation(const AblationOptions& options, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper ablation`.
Handler ablation_command(Flags& flags);

}  // namespace temper::cli
