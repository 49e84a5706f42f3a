// Rules of `algorithm.distillation_top_k`.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"
#include "trainer/algorithm.hpp"

namespace temper::orchestrator {

/// Checks what it needs of the reference. `algorithm` is the resolved section.
void check_top_k(const PipelineConfig& config, const trainer::Algorithm& algorithm, Rules& rules);

}  // namespace temper::orchestrator
