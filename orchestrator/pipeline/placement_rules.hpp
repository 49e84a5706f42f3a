// What `placement` needs: cards that exist, given to one role where roles do not share them.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

namespace temper::orchestrator {

/// `p`: the section resolved.
void check_placement(const PipelineConfig& c, const PlacementConfig& p, Rules& rules);
/// What only simulated actors can do (switch one by one), and what it needs.
void check_overlap(const PipelineConfig& c, Rules& rules);
/// What gradients need that are computed before their batch is whole (stragglers.prepare).
void check_preparing(const PipelineConfig& c, Rules& rules);

}  // namespace temper::orchestrator
