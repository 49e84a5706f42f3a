// Reports of a rollout layout search as text and JSON: the plans, their terms side by side, why
// each loses to the first, tokens/s over the time per token, and the accuracy of the model.
#pragma once

#include "sim_hw/plan/rollout_search.hpp"
#include "sim_hw/validation/error_spread.hpp"

#include <optional>
#include <string>

namespace temper::study {

struct RolloutPlanReport {
  const sim_hw::RolloutProblem& problem;  ///< Borrowed.
  std::int64_t cards = 0;
  sim_hw::RolloutSearch search;                 ///< With at least one plan.
  std::optional<sim_hw::RolloutPlan> compared;  ///< The user's layout, for comparison.
  sim_hw::ErrorSpread spread;
};

std::string rollout_plan_text(const RolloutPlanReport& report);
std::string rollout_plan_json(const RolloutPlanReport& report);
/// Tokens/s over the time per token, along the front.
std::string rollout_plan_svg(const RolloutPlanReport& report);

}  // namespace temper::study
