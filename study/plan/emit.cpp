#include "study/plan/emit.hpp"

#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "sim_hw/layout/stages.hpp"
#include "study/plan/internal/emit_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::study {
namespace {

using sim_hw::Recompute;
using sim_hw::Zero;

void add_verl_cluster(Script& out, std::int64_t devices, std::int64_t node) {
  out.flags.push_back(fmt::format("trainer.nnodes={}", (devices + node - 1) / node));
  out.flags.push_back(fmt::format("trainer.n_gpus_per_node={}", std::min(devices, node)));
}

Error has_no(EmitTarget engine, std::string_view side, std::string_view others) {
  return invalid_input(
      fmt::format("--emit {}: has no flags for {}; expected {}", name_of(engine), side, others));
}

Result<std::string> emit_engine(EmitTarget engine, const Engine& e) {
  if (engine == EmitTarget::Megatron)
    return has_no(engine, "a rollout", "vllm, sglang and verl");
  if (engine == EmitTarget::Vllm)
    return vllm_script(e).text();
  if (engine == EmitTarget::Sglang)
    return sglang_script(e).text();
  Script out;
  note_engine(out, e);
  add_verl(out, e);
  return out.text();
}

Result<std::string> emit_trainer(EmitTarget engine, const Trainer& t) {
  if (engine == EmitTarget::Vllm || engine == EmitTarget::Sglang)
    return has_no(engine, "training", "megatron and verl");
  if (engine == EmitTarget::Megatron)
    return megatron_script(t).text();
  Script out;
  note_trainer(out, t);
  add_verl(out, t);
  add_verl_cluster(out, t.layout.devices(), t.node);
  return out.text();
}

std::vector<std::int64_t> layers_of(const sim_hw::ModelSpec& model, const sim_hw::Layout& layout) {
  std::vector<std::int64_t> out;
  for (std::int64_t stage = 0; stage < layout.pp; ++stage)
    out.push_back(sim_hw::stage_layers(model, layout, stage));
  return out;
}

bool any(const sim_hw::TensorFates& fates) {
  return fates.recomputed != 0 || fates.swapped != 0;
}

Engine engine_of(const ConfigPlan& plan, const sim_hw::ModelSpec& model) {
  const sim_hw::HardwareSpec& hardware = plan.engine_hardware;
  const orchestrator::PipelineConfig& c = plan.config;
  const EngineChoice& chosen = plan.rollouts.front();
  Engine e;
  e.model = model.name;
  e.engines = plan.engines;
  e.devices = plan.engine_cards * hardware.dies_per_card;
  e.node = hardware.devices_per_node();
  e.tp = chosen.layout.tp;
  e.ep = chosen.layout.ep;
  e.experts = model.moe.has_value();
  e.slots = std::max<std::int64_t>(1, (c.rollout.concurrency + e.replicas() - 1) / e.replicas());
  e.kv_bytes = chosen.memory.device.kv_cache;
  e.static_share = (chosen.memory.device.weights + e.kv_bytes) / actors::device_capacity(hardware);
  e.longest =
      (actors::longest(c.simulation.prompt) + actors::longest(c.simulation.response)).count();
  e.prefill_tokens = chosen.layout.prefill_tokens;
  return e;
}

Trainer trainer_of(const ConfigPlan& plan, const sim_hw::ModelSpec& served) {
  const TrainerChoice& chosen = plan.trainers.front();
  sim_hw::ModelSpec model = served;
  if (!chosen.layout.mtp)
    model.mtp_layers = 0;
  Trainer t;
  t.model = model.name;
  t.node = plan.trainer_hardware.devices_per_node();
  t.layout.tp = chosen.layout.tp;
  t.layout.pp = chosen.layout.pp;
  t.layout.vpp = chosen.layout.vpp;
  t.layout.ep = chosen.layout.ep;
  t.layout.cp = chosen.layout.cp;
  t.layout.dp = chosen.dp;
  // As actors/simulation/role_layouts.hpp sets for every pipeline's trainer.
  t.layout.zero = Zero::Optimizer;
  t.layout.sequence_parallel =
      t.layout.tp > 1 ? sim_hw::SequenceParallel::On : sim_hw::SequenceParallel::Off;
  t.layout.layer_balance = chosen.layout.layer_balance;
  t.chosen_tensors = chosen.layout.activations != sim_hw::ActivationPolicy::Full;
  t.recompute = t.chosen_tensors ? Recompute::None : Recompute::Full;
  t.stage_layers = layers_of(model, t.layout);
  t.experts = model.moe.has_value();
  t.optimizer_on_host = chosen.layout.optimizer_on_host;
  t.micro_batch_tokens = chosen.layout.micro_batch_tokens;
  return t;
}

/// verl overrides for both sides of a pipeline.
std::string verl_pipeline(const Engine& e, const Trainer& t, const ConfigPlan& plan) {
  const orchestrator::PipelineConfig& c = plan.config;
  Script out;
  note_engine(out, e);
  note_trainer(out, t);
  const auto add = [&](std::string_view key, const auto& value) {
    out.flags.push_back(fmt::format("{}={}", key, value));
  };
  add("data.train_batch_size", c.algorithm.groups_per_update);
  add("data.max_prompt_length", actors::longest(c.simulation.prompt).count());
  add("data.max_response_length", actors::longest(c.simulation.response).count());
  out.flags.push_back(fmt::format("{}n={}", kVerlRollout, c.algorithm.responses_per_group));
  add_verl(out, e);
  add_verl(out, t);
  const bool shared = traits_of(c.placement.mode).shares;
  if (!shared) {
    out.notes.emplace_back(
        "rollout and trainer are on separate cards: verl's fully asynchronous trainer; the nodes "
        "below are the trainer's");
  }
  if (plan.engine_hardware.name != plan.trainer_hardware.name) {
    out.notes.push_back(
        fmt::format("rollout on {}, trainer on {}: create a Ray resource pool for each",
                    plan.engine_hardware.name,
                    plan.trainer_hardware.name));
  }
  add_verl_cluster(out, t.layout.devices(), t.node);
  return out.text();
}

}  // namespace

Result<std::string> emit(EmitTarget engine,
                         const sim_hw::RolloutProblem& problem,
                         const sim_hw::RolloutPlan& plan) {
  Engine e;
  e.model = problem.model.name;
  e.engines = plan.engines;
  e.devices = plan.scenario.engine_devices;
  e.node = problem.hardware.devices_per_node();
  e.tp = plan.scenario.tp;
  e.ep = plan.scenario.ep;
  e.experts = problem.model.moe.has_value();
  e.slots = plan.scenario.slots;
  e.kv_bytes = plan.memory.device.kv_cache;
  e.kv_tokens = plan.kv_tokens;
  e.static_share = (plan.memory.device.weights + e.kv_bytes) / problem.device_memory;
  e.longest = static_cast<std::int64_t>(std::ceil(problem.lengths.longest));
  e.prefill_tokens = static_cast<std::int64_t>(problem.prefill_tokens);
  return emit_engine(engine, e);
}

Result<std::string> emit(EmitTarget engine,
                         const sim_hw::TrainProblem& problem,
                         const sim_hw::HardwareSpec& hardware,
                         const sim_hw::TrainPlan& plan) {
  const sim_hw::TrainShape& shape = plan.scenario.shape;
  Trainer t;
  t.model = problem.model.name;
  t.node = hardware.devices_per_node();
  t.layout = plan.scenario.layout;
  t.stage_layers = layers_of(problem.model, t.layout);
  t.experts = problem.model.moe.has_value();
  t.recompute = shape.recompute;
  t.recompute_every = shape.recompute_every;
  t.chosen_tensors = any(shape.activations.dense) || any(shape.activations.experts);
  t.optimizer_on_host = plan.scenario.state == sim_hw::TrainerState::OptimizerOnHost;
  t.expert_overlap = shape.expert_overlap == sim_hw::ExpertOverlap::On;
  t.global_batch = shape.global_batch;
  t.seq = shape.seq;
  t.micro_batch = shape.micro_batch;
  return emit_trainer(engine, t);
}

Result<std::string> emit(EmitTarget engine,
                         const ConfigPlan& plan,
                         const sim_hw::ModelSpec& model) {
  const Trainer t = trainer_of(plan, model);
  if (engine == EmitTarget::Megatron)
    return emit_trainer(engine, t);
  const Engine e = engine_of(plan, model);
  if (engine == EmitTarget::Verl)
    return verl_pipeline(e, t, plan);
  return emit_engine(engine, e);
}

}  // namespace temper::study
