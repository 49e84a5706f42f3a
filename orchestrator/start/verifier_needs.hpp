// What the verifiers of a run need on this machine besides programs and packages: a sandbox, a key
// in the environment, a model folder.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

#include <vector>

namespace temper::orchestrator {

std::vector<BrokenRule> missing_for_verifier(const PipelineConfig& config);

}  // namespace temper::orchestrator
