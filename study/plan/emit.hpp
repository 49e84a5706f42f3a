// Converts a plan to the options of other engines: flags of vLLM and SGLang for a rollout, of
// Megatron-LM for training, and verl overrides for either. Parts of a plan without a flag become
// comments. Flag names as of vLLM 0.32, SGLang's server arguments of 2025, Megatron Core 0.20 and
// verl 0.8. Pure functions.
#pragma once

#include "sim_hw/plan/rollout_search.hpp"
#include "sim_hw/plan/train_plan.hpp"
#include "study/plan/config_plan.hpp"

#include <string>

namespace temper::study {

enum class EmitTarget { Vllm, Sglang, Megatron, Verl };

/// Errors: Megatron does not generate; vLLM and SGLang do not train.
Result<std::string> emit(EmitTarget engine,
                         const sim_hw::RolloutProblem& problem,
                         const sim_hw::RolloutPlan& plan);
Result<std::string> emit(EmitTarget engine,
                         const sim_hw::TrainProblem& problem,
                         const sim_hw::HardwareSpec& hardware,
                         const sim_hw::TrainPlan& plan);
/// Emits the side of the pipeline that the engine supports; both for verl.
Result<std::string> emit(EmitTarget engine, const ConfigPlan& plan, const sim_hw::ModelSpec& model);

}  // namespace temper::study

template <>
struct temper::EnumNames<temper::study::EmitTarget> {
  using E = study::EmitTarget;
  static constexpr std::array<std::pair<E, std::string_view>, 4> value{
      {{E::Vllm, "vllm"}, {E::Sglang, "sglang"}, {E::Megatron, "megatron"}, {E::Verl, "verl"}}};
};
