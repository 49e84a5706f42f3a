// What `launch: attach` of a role needs of the rest of a pipeline.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

namespace temper::orchestrator {

/// Workers that others start come over a network, prove themselves by a key, and keep their cards.
void check_launch(const PipelineConfig& c, Rules& rules);

}  // namespace temper::orchestrator
