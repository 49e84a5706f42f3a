// Rules of `algorithm.critic`.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"
#include "trainer/algorithm.hpp"

namespace temper::orchestrator {

/// Checks what a critic does not combine with. `algorithm` is the resolved section.
void check_critic(const PipelineConfig& config, const trainer::Algorithm& algorithm, Rules& rules);

}  // namespace temper::orchestrator
