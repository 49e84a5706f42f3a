// Makes a pipeline that runs a plan: from the layouts of one side to a configuration on simulated
// hardware that `temper check` accepts. Training and rollout time-share the plan's cards; the
// layout of the other side is chosen to fit (config_plan.hpp).
//
// A pipeline trains with ZeRO 1, sequence parallelism, full recompute, bf16 gradients and unsplit
// experts (actors/simulation/role_layouts.hpp), whatever the plan chose for these.
#pragma once

#include "core/result.hpp"
#include "sim_hw/plan/rollout_search.hpp"
#include "sim_hw/plan/train_plan.hpp"
#include "study/plan/config_plan.hpp"

#include <string>

namespace temper::study {

/// The target of a plan, by the names used in requests.
struct PlanSubject {
  std::string hardware;
  std::string model;
  const sim_hw::HardwareSpec& spec;  ///< Borrowed.
};

/// Errors: the plan splits experts (narrow it with expert_tp=1); not whole cards; no engine fits.
Result<orchestrator::PipelineConfig> pipeline_of(const PlanSubject& subject,
                                                 const sim_hw::TrainProblem& problem,
                                                 const sim_hw::TrainPlan& plan);

/// `response`: response length in tokens. Errors: no trainer fits.
Result<orchestrator::PipelineConfig> pipeline_of(const PlanSubject& subject,
                                                 const sim_hw::RolloutProblem& problem,
                                                 const sim_hw::RolloutPlan& plan,
                                                 const actors::LengthConfig& response);

}  // namespace temper::study
