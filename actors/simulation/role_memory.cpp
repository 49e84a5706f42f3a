#include "actors/simulation/role_memory.hpp"

#include "actors/simulation/expert_imbalance.hpp"
#include "actors/simulation/lengths.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "sim_hw/memory/weights.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/parallel/activation_choice.hpp"
#include "sim_hw/steps/adapter_products.hpp"
#include "sim_hw/steps/steps.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace temper::actors {
namespace {

using sim_hw::as_double;

sim_hw::Layout engine_shards(const sim_hw::RolloutLayout& rollout) {
  sim_hw::Layout layout;
  layout.tp = static_cast<std::int64_t>(rollout.tp);
  layout.dp = static_cast<std::int64_t>(rollout.dp);
  layout.ep = static_cast<std::int64_t>(rollout.ep);
  layout.redundant_experts = rollout.redundant_experts;
  return layout;
}

double dies_on(const SimulatedRun& s, std::int64_t cards) {
  return as_double(cards * s.cluster.dies_per_card);
}

/// Bytes of the adapter on one device.
double adapter_bytes(const SimulationSettings& s) {
  const sim_hw::Layout shards = engine_shards(rollout_layout(s));
  return sim_hw::kAdapterBytes *
         sim_hw::stage_parameters(engine_model(s), shards, *s.adapter, 0).total();
}

/// Ledger without the KV cache.
sim_hw::Ledger engine_ledger(const SimulationSettings& s, const sim_hw::RolloutLayout& layout) {
  sim_hw::InferenceShape shape;
  shape.batch_tokens = as_double(s.config.rollout.prefill_tokens);
  shape.logit_rows = std::ceil(as_double(s.concurrency) / layout.dp) * engine_drafts(s).queries();
  shape.weight_bytes = bytes_per_weight(s);
  sim_hw::Ledger ledger = sim_hw::inference_ledger(engine_model(s), engine_shards(layout), shape);
  const double version = s.adapter ? adapter_bytes(s) : ledger.weights;
  ledger.older_weights = as_double(s.older_versions) * version;
  if (s.adapter)
    ledger.weights += version;
  ledger.weights += frozen_draft_bytes(s);
  return ledger;
}

/// Blocks of KV cache of one replica.
double kv_blocks(const SimulationSettings& s, const sim_hw::Ledger& engine) {
  const double room =
      s.config.rollout.kv_share * (device_capacity(s) - engine.weights - engine.older_weights);
  const double block = kv_token_bytes(s) * as_double(s.config.rollout.block);
  return std::max(0.0, std::floor(room / block));
}

}  // namespace

double device_capacity(const sim_hw::HardwareSpec& hardware) {
  return as_double(hardware.die.memory.count());
}

double host_capacity(const sim_hw::HardwareSpec& hardware) {
  return as_double(hardware.host.memory.count()) / as_double(hardware.devices_per_node());
}

double device_capacity(const SimulatedRun& s) {
  return device_capacity(s.cluster);
}

double host_capacity(const SimulatedRun& s) {
  return host_capacity(s.cluster);
}

Bytes bytes_on(const SimulatedRun& s, std::int64_t cards, double per_device) {
  return Bytes(static_cast<std::int64_t>(
      std::ceil(per_device * as_double(cards * s.cluster.dies_per_card))));
}

double moved_bytes(const ActorMemory& memory) {
  return memory.device.weights + memory.device.optimizer;
}

ActorMemory trainer_memory(const SimulatedRun& s) {
  return trainer_memory(s, 2 * s.config.trainer.pp, largest_micro_batch(s));
}

ActorMemory trainer_memory(const SimulatedRun& s, std::int64_t micro_batches, Tokens longest) {
  const sim_hw::Layout layout = trainer_layout(s);
  const sim_hw::ModelSpec model = trained_model(s);
  sim_hw::TrainShape shape = training_shape(s, layout, micro_batches, longest);
  shape.expert_imbalance = largest_imbalance(s, layout);
  ActorMemory memory =
      sim_hw::place(sim_hw::worst_train_ledger(model, layout, shape),
                    s.config.trainer.optimizer_on_host ? sim_hw::TrainerState::OptimizerOnHost
                                                       : sim_hw::TrainerState::Active);
  if (shape.activations != sim_hw::ActivationPlan{}) {
    const sim_hw::HardwareSpec& hardware = hardware_of(s, RoleKind::Trainer);
    memory.host.activations = sim_hw::swapped_bytes(
        {model, sim_hw::make_device(hardware), sim_hw::make_fabric(hardware), layout, shape});
  }
  memory.host.tensors = s.step_tensors / dies_on(s, s.trainer_cards);
  if (s.critic) {
    for (double* state : {&memory.device.weights,
                          &memory.device.gradients,
                          &memory.device.optimizer,
                          &memory.host.optimizer})
      *state *= 2;
  }
  return memory;
}

sim_hw::Ledger parked(const ActorMemory& trainer, Gradients gradients) {
  sim_hw::Ledger host = trainer.host;
  host.activations = host.tensors = 0;
  host.weights = trainer.device.weights;
  host.optimizer += trainer.device.optimizer;
  if (gradients == Gradients::Kept)
    host.gradients += trainer.device.gradients;
  return host;
}

ActorMemory reference_memory(const SimulationSettings& s) {
  return reference_memory(s, largest_micro_batch(s));
}

ActorMemory reference_memory(const SimulationSettings& s, Tokens longest) {
  const sim_hw::Layout layout = reference_layout(s);
  const double tokens = as_double(longest.count()) / as_double(layout.cp);
  sim_hw::InferenceShape shape;
  shape.batch_tokens = tokens;
  shape.logit_rows = std::min(tokens, sim_hw::kHeadChunk);
  return {sim_hw::inference_ledger(served_model(s), layout, shape), {}};
}

double bytes_per_weight(const SimulationSettings& s) {
  return sim_hw::matrix_format(s.config.rollout.weights, s.cluster.die).weight_bytes;
}

double frozen_draft_bytes(const SimulationSettings& s) {
  if (engine_drafts(s).by != sim_hw::Draft::Eagle)
    return 0;
  return bytes_per_weight(s) * sim_hw::eagle_parameters(s.model, engine_shards(rollout_layout(s)));
}

double kv_token_bytes(const SimulationSettings& s) {
  const sim_hw::ModelSpec model = engine_model(s);
  const std::int64_t drafting = engine_drafts(s).by == sim_hw::Draft::Eagle ? 1 : model.mtp_layers;
  const double of_layers = sim_hw::kv_bytes_per_token(
      model, engine_shards(rollout_layout(s)), sim_hw::cache_bytes(s.config.rollout.kv_cache));
  return of_layers * as_double(model.layers + drafting) / as_double(model.layers);
}

ActorMemory decode_memory(const SimulationSettings& s) {
  const sim_hw::RolloutLayout layout = rollout_layout(s);
  ActorMemory memory;
  memory.device = engine_ledger(s, layout);
  memory.device.kv_cache =
      kv_blocks(s, memory.device) * as_double(s.config.rollout.block) * kv_token_bytes(s);
  if (!s.colocated) {
    const double version = decoded_version(s);
    memory.device.communication = std::min(kBucketBytes, version);
    memory.host.weights = version;
  }
  return memory;
}

ActorMemory rollout_memory(const SimulationSettings& s) {
  ActorMemory memory = decode_memory(s);
  if (s.config.rollout.prefill_cards > 0) {
    const ActorMemory prefill = decode_memory(prefill_instance(s));
    if (prefill.device.total() > memory.device.total())
      memory.device = prefill.device;
    if (prefill.host.total() > memory.host.total())
      memory.host = prefill.host;
  }
  memory.host.tensors = s.outstanding_tensors / dies_on(s, s.rollout_cards);
  return memory;
}

ActorMemory renewing(const SimulationSettings& s) {
  const double version = version_bytes(s);
  ActorMemory renewed = rollout_memory(s);
  renewed.device.communication += std::min(kBucketBytes, version);
  renewed.host.weights += version;
  return renewed;
}

Tokens kv_tokens(const SimulationSettings& s) {
  const double blocks = kv_blocks(s, engine_ledger(s, rollout_layout(s)));
  return Tokens(static_cast<std::int64_t>(blocks)) * s.config.rollout.block;
}

std::int64_t kv_slots(const SimulationSettings& s) {
  const double context = drawn_lengths(s.config.prompt, s.config.response).context;
  const double replicas = rollout_layout(s).dp / as_double(s.response_weight);
  const double cached = replicas * as_double(kv_tokens(s).count());
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(cached / context));
}

double decoded_version(const SimulationSettings& s) {
  return s.adapter ? adapter_bytes(s)
                   : engine_ledger(s, rollout_layout(s)).weights - frozen_draft_bytes(s);
}

double version_bytes(const SimulationSettings& s) {
  const double decoding = decoded_version(s);
  return s.config.rollout.prefill_cards == 0
             ? decoding
             : std::max(decoding, decoded_version(prefill_instance(s)));
}

double swap_bytes(const SimulationSettings& s) {
  return s.colocated ? 0 : version_bytes(s);
}

}  // namespace temper::actors
