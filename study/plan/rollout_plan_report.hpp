// What a search of rollout layouts found, for people and for programs: the plans, their terms
// beside each other, why each loses to the first, tokens/s against the time of a token, and how
// sure it is.
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
  std::optional<sim_hw::RolloutPlan> compared;  ///< A layout that the user put beside them.
  sim_hw::ErrorSpread spread;
};

std::string rollout_plan_text(const RolloutPlanReport& report);
std::string rollout_plan_json(const RolloutPlanReport& report);
/// Tokens/s against the time of a token, along the front.
std::string rollout_plan_svg(const RolloutPlanReport& report);

}  // namespace temper::study
