// Reports of a planned pipeline as text and JSON: the layouts and the configured ones, term by
// term, with the accuracy of the model.
#pragma once

#include "sim_hw/validation/error_spread.hpp"
#include "study/plan/config_plan.hpp"

#include <string>

namespace temper::study {

struct ConfigPlanReport {
  ConfigPlan plan;
  sim_hw::ErrorSpread training;
  sim_hw::ErrorSpread rollout;
};

std::string config_plan_text(const ConfigPlanReport& report);
std::string config_plan_json(const ConfigPlanReport& report);

}  // namespace temper::study
