// Rules of a configuration that depend on this machine.
#pragma once

#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/validate.hpp"

#include <vector>

namespace temper::orchestrator {

/// Issues of a configuration on this machine: its model folder, prompts, programs, Python modules
/// and cores. May take as long as importing the Python modules does.
std::vector<BrokenRule> rules_of_this_machine(const PipelineConfig& config);

/// Number of this machine's cores that a run needs; only attached workers use cards beyond it.
std::int32_t cards_here(const PipelineConfig& config);

}  // namespace temper::orchestrator
