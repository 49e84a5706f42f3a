// `temper ablation`: what each mechanism of MoE training is worth, predicted with it off and on,
// beside what was published (sim_hw/ablation/ablation.hpp).
#pragma once

#include "cli/command/command_line.hpp"

#include <iosfwd>
#include <string>

namespace temper::cli {

struct AblationOptions {
  std::string expert_loads;  ///< CSV of recorded loads; empty: generated.
  std::string samples;       ///< CSV of recorded document lengths; empty: generated.
  bool json = false;
  bool markdown = false;  ///< As docs/moe_mechanisms.md has it.
};

/// The exit code of the command.
int run_ablation(const AblationOptions& options, std::ostream& out, std::ostream& err);

/// `temper ablation`: its flags, and what it does.
Handler ablation_command(Flags& flags);

}  // namespace temper::cli
