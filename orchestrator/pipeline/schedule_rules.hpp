// Rules of `algorithm.learning_rate_schedule`.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

namespace temper::orchestrator {

void check_schedule(const PipelineConfig& config, Rules& rules);

}  // namespace temper::orchestrator
