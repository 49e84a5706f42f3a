// Rules for deadlines that no run on these cards can meet.
#pragma once

#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/rules.hpp"

namespace temper::orchestrator {

/// Compares the predicted times of publications and role switches, with those of
/// `simulation.framework`, with `deadlines.weights` and `deadlines.switching`. Times that depend on
/// what a run generates are not predicted. Requires: simulated hardware, and check_memory() accepts
/// the placement.
void check_deadlines(const ResolvedPipeline& pipeline, Rules& rules);

}  // namespace temper::orchestrator
