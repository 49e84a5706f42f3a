// The programs of the user that a run starts: whether they are there is known before it begins.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/validate.hpp"

#include <vector>

namespace temper::orchestrator {

/// Each program that is not there, by the key that names it.
std::vector<BrokenRule> missing_programs(const PipelineConfig& config);

}  // namespace temper::orchestrator
