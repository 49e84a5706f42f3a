// Rules of model.lora.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

namespace temper::orchestrator {

/// Checks the targets and the rank against the model, and that trainer and rollout engines can
/// train and apply adapters.
void check_lora(const PipelineConfig& config, Rules& rules);

}  // namespace temper::orchestrator
