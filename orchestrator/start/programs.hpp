// Checks, before a run, that the user programs it starts exist.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/validate.hpp"

#include <vector>

namespace temper::orchestrator {

/// One issue for each missing program, at the key that names it.
std::vector<BrokenRule> missing_programs(const PipelineConfig& config);

}  // namespace temper::orchestrator
