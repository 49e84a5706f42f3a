// What a search of training layouts found, for people and for programs: the plans, their terms
// beside each other, why each loses to the first, time against memory, and how sure it is.
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
  std::optional<sim_hw::TrainPlan> compared;  ///< A layout that the user put beside them.
  sim_hw::ErrorSpread spread;
};

std::string train_plan_text(const TrainPlanReport& report);
std::string train_plan_json(const TrainPlanReport& report);
/// Step time against memory of the front.
std::string train_plan_svg(const TrainPlanReport& report);

}  // namespace temper::study
