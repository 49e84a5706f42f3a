// Rules for `launch: attach`.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

namespace temper::orchestrator {

/// Attached workers connect over TCP, authenticate with a key and have exclusive cards.
void check_launch(const PipelineConfig& c, Rules& rules);

}  // namespace temper::orchestrator
