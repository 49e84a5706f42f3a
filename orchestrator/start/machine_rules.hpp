// What a configuration asks of this machine.
#pragma once

#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/validate.hpp"

#include <vector>

namespace temper::orchestrator {

/// What is wrong with a configuration on this machine: its model folder, its prompts, the programs
/// and the Python that it names, its cores. May take as long as importing that Python does.
std::vector<BrokenRule> rules_of_this_machine(const PipelineConfig& config);

/// Cards of this machine that a run needs: beyond those only attached workers have any.
std::int32_t cards_here(const PipelineConfig& config);

}  // namespace temper::orchestrator
