// Rules for `placement`: the cards must exist, and exclusive cards belong to one role.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

namespace temper::orchestrator {

/// `p`: the resolved section.
void check_placement(const PipelineConfig& c, const PlacementConfig& p, Rules& rules);
/// Rules for features that only simulated actors have (one_by_one).
void check_overlap(const PipelineConfig& c, Rules& rules);
/// Rules for gradients that are computed before the batch is complete (stragglers.prepare).
void check_preparing(const PipelineConfig& c, Rules& rules);

}  // namespace temper::orchestrator
