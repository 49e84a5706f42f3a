// Explains why there is no training plan, by how much the nearest one misses, and which change
// would help: nothing fits the memory, or nothing is fast enough. Each change is tried with the
// search itself, in a fixed order: each narrowed key free again, more cards, shorter sequences.
// Pure functions.
#pragma once

#include "sim_hw/plan/train_request.hpp"

#include <string>

namespace temper::sim_hw {

/// Requires: a search of the request that found no plan.
Error no_plan(const TrainProblem& problem,
              const TrainPlanRequest& request,
              const TrainSearch& search);

/// Requires: `best` is the fastest plan and slower than request.max_seconds.
Error too_slow(const TrainProblem& problem, const TrainPlanRequest& request, const TrainPlan& best);

}  // namespace temper::sim_hw
