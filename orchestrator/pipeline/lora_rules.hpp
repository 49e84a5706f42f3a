// Rules of model.lora.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

namespace temper::orchestrator {

/// Checks that trainer and rollout engines can train and apply adapters; of real models also the
/// targets and the rank (simulated ones: check_simulation() in simulation.hpp).
void check_lora(const PipelineConfig& config, Rules& rules);

}  // namespace temper::orchestrator
