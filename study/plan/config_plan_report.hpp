// Both sides of a planned pipeline, for people and for programs: the layouts, beside the configured
// ones, term by term, and how sure it is.
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
