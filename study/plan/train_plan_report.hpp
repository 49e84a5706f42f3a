// Reports of a training layout search as text and JSON: the plans, their terms side by side, why
// each loses to the first, time over memory, and the accuracy of the model.
#pragma once

#include "sim_hw/plan/train_search.hpp"
#include "sim_hw/validation/error_spread.hpp"

#include <optional>
#include <string>

namespace temper::study {

struct TrainPlanReport {
  const sim_hw::TrainProblem& problem;  ///< Borrowed.
  std::string hardware;
  std::int64_t cards = 0;
  sim_hw::TrainSearch search;                 ///< With at least one plan.
  std::optional<sim_hw::TrainPlan> compared;  ///< The user's layout, for comparison.
  sim_hw::ErrorSpread spread;
};

std::string train_plan_text(const TrainPlanReport& report);
std::string train_plan_json(const TrainPlanReport& report);
/// Step time over memory, along the front.
std::string train_plan_svg(const TrainPlanReport& report);

}  // namespace temper::study
