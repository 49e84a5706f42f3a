// A pipeline that runs a plan: from the layouts of one side to a configuration on simulated
// hardware that `temper check` accepts. Training and rollout take turns on the plan's cards; the
// other side's layout is chosen beside it (config_plan.hpp).
//
// A pipeline trains with ZeRO 1, sequence parallelism, every layer recomputed, bf16 gradients and
// experts that are not cut (actors/simulation/role_layouts.hpp), whatever the plan chose of these.
#pragma once

#include "core/result.hpp"
#include "sim_hw/plan/rollout_search.hpp"
#include "sim_hw/plan/train_plan.hpp"
#include "study/plan/config_plan.hpp"

#include <string>

namespace temper::study {

/// What a plan is made for, by the names that questions use.
struct PlanSubject {
  std::string hardware;
  std::string model;
  const sim_hw::HardwareSpec& spec;  ///< Borrowed.
};

/// Errors: the plan cuts experts (narrow it with expert_tp=1); no whole cards; no engine fits.
Result<orchestrator::PipelineConfig> pipeline_of(const PlanSubject& subject,
                                                 const sim_hw::TrainProblem& problem,
                                                 const sim_hw::TrainPlan& plan);

/// `response`: how long responses are. Errors: no trainer fits.
Result<orchestrator::PipelineConfig> pipeline_of(const PlanSubject& subject,
                                                 const sim_hw::RolloutProblem& problem,
                                                 const sim_hw::RolloutPlan& plan,
                                                 const actors::LengthConfig& response);

}  // namespace temper::study
