#include "actors/simulation/costs.hpp"

#include "sim_hw/model/numbers.hpp"
#include "sim_hw/network/reshard.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/steps/rollout_layout.hpp"
#include "sim_hw/steps/step_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace temper::actors {
namespace {

using sim_hw::as_double;

std::int64_t devices_of(const SimulationSettings& s, std::int64_t cards) {
  return cards * s.cluster.dies_per_card;
}

/// The largest divisor of `whole` that is at most `limit`, and 1 or more. Requires: whole >= 1.
std::int64_t largest_divisor(std::int64_t whole, std::int64_t limit) {
  for (std::int64_t d = std::min(whole, limit); d > 1; --d) {
    if (whole % d == 0)
      return d;
  }
  return 1;
}

sim_hw::SequenceParallel sequence_parallel(std::int64_t tp) {
  return tp > 1 ? sim_hw::SequenceParallel::On : sim_hw::SequenceParallel::Off;
}

/// The trainer's layout with its data parallelism left open.
sim_hw::Layout training_cuts(const TrainerEngineConfig& c) {
  sim_hw::Layout layout;
  layout.tp = c.tp;
  layout.pp = c.pp;
  layout.vpp = c.vpp;
  layout.ep = c.ep;
  layout.cp = c.cp;
  layout.zero = sim_hw::Zero::Optimizer;
  layout.sequence_parallel = sequence_parallel(c.tp);
  layout.layer_balance = c.layer_balance;
  return layout;
}

sim_hw::Layout engine_shards(const sim_hw::RolloutLayout& rollout) {
  sim_hw::Layout layout;
  layout.tp = static_cast<std::int64_t>(rollout.tp);
  layout.dp = static_cast<std::int64_t>(rollout.dp);
  layout.ep = static_cast<std::int64_t>(rollout.ep);
  return layout;
}

/// Without its KV cache.
sim_hw::Ledger engine_ledger(const SimulationSettings& s, const sim_hw::RolloutLayout& layout) {
  sim_hw::InferenceShape shape;
  shape.batch_tokens = as_double(s.config.rollout.prefill_tokens);
  shape.logit_rows = std::ceil(as_double(s.concurrency) / layout.dp);
  return sim_hw::inference_ledger(trained_model(s), engine_shards(layout), shape);
}

double kv_token_bytes(const SimulationSettings& s, const sim_hw::RolloutLayout& layout) {
  return sim_hw::kv_bytes_per_token(trained_model(s), engine_shards(layout));
}

/// Blocks of KV cache of one replica.
double kv_blocks(const SimulationSettings& s,
                 const sim_hw::RolloutLayout& layout,
                 const sim_hw::Ledger& engine) {
  const double room = s.config.rollout.kv_share * (device_capacity(s) - engine.weights);
  const double block = kv_token_bytes(s, layout) * as_double(s.config.rollout.block);
  return std::max(0.0, std::floor(room / block));
}

std::int64_t engines_of(const SimulationSettings& s) {
  return std::max<std::int64_t>(1, s.rollout_cards / s.cards);
}

sim_hw::ReshardTraffic publication(const sim_hw::Fabric& fabric, const SimulationSettings& s) {
  const sim_hw::Layout training = trainer_layout(s);
  const sim_hw::RolloutLayout engine = rollout_layout(s);
  // Engines have as many cards each, so that all of them are more replicas of one. Their cards come
  // first, the trainer's behind them.
  const std::int64_t engines = engines_of(s);
  const sim_hw::ShardLayout to{.tp = static_cast<std::int64_t>(engine.tp),
                               .pp = 1,
                               .dp = static_cast<std::int64_t>(engine.dp) * engines,
                               .ep = static_cast<std::int64_t>(engine.ep),
                               .first_device = 0};
  const sim_hw::ShardLayout from{.tp = training.tp,
                                 .pp = training.pp,
                                 .dp = training.dp * training.cp,
                                 .ep = training.ep,
                                 .first_device = s.colocated ? 0 : to.devices()};
  const bool relay = s.config.publication.mode == PublicationMode::Relay;
  return sim_hw::reshard_traffic(fabric,
                                 sim_hw::weight_volume(trained_model(s), 2),
                                 from,
                                 to,
                                 relay ? sim_hw::FanOut::Tree : sim_hw::FanOut::Direct);
}

}  // namespace

double device_capacity(const SimulationSettings& s) {
  return as_double(s.cluster.die.memory.count());
}

double host_capacity(const SimulationSettings& s) {
  return as_double(s.cluster.host.memory.count()) / as_double(s.cluster.devices_per_node());
}

Bytes bytes_on(const SimulationSettings& s, std::int64_t cards, double per_device) {
  return Bytes(static_cast<std::int64_t>(std::ceil(per_device * as_double(devices_of(s, cards)))));
}

Tokens longest(const LengthConfig& c) {
  switch (c.kind) {
    case LengthKind::Constant:
      return std::min(c.cap, Tokens(static_cast<std::int64_t>(std::ceil(c.mean))));
    case LengthKind::Lognormal:
      return c.cap;
    case LengthKind::Histogram:
      return std::min(c.cap, c.width * static_cast<std::int64_t>(c.weights.size()));
    case LengthKind::Trace:
      return c.lengths.empty() ? c.cap
                               : std::min(c.cap, Tokens(*std::ranges::max_element(c.lengths)));
  }
  return c.cap;
}

Tokens largest_micro_batch(const SimulationSettings& s) {
  return std::max(Tokens(s.config.trainer.micro_batch_tokens),
                  longest(s.config.prompt) + longest(s.config.response));
}

sim_hw::ModelSpec trained_model(const SimulationSettings& s) {
  sim_hw::ModelSpec model = s.model;
  model.mtp_layers = 0;
  return model;
}

sim_hw::Layout trainer_layout(const SimulationSettings& s) {
  sim_hw::Layout layout = training_cuts(s.config.trainer);
  layout.dp = devices_of(s, s.trainer_cards) / (layout.tp * layout.pp * layout.cp);
  return layout;
}

sim_hw::Layout reference_layout(const SimulationSettings& s) {
  sim_hw::Layout layout = training_cuts(s.config.trainer);
  const std::int64_t devices = devices_of(s, s.cards);
  layout.vpp = 1;
  layout.tp = std::gcd(layout.tp, devices);
  layout.sequence_parallel = sequence_parallel(layout.tp);
  layout.cp = std::gcd(layout.cp, devices / layout.tp);
  layout.pp =
      largest_divisor(devices / (layout.tp * layout.cp), std::min(layout.pp, s.model.layers));
  layout.dp = devices / (layout.tp * layout.pp * layout.cp);
  if (s.model.moe) {
    std::int64_t ep = std::min(layout.ep, layout.stage_devices());
    while (ep > 1 && (s.model.moe->experts % ep != 0 || layout.stage_devices() % ep != 0))
      --ep;
    layout.ep = ep;
  }
  return layout;
}

sim_hw::RolloutLayout rollout_layout(const SimulationSettings& s) {
  const RolloutEngineConfig& c = s.config.rollout;
  sim_hw::RolloutLayout layout;
  layout.tp = as_double(c.tp);
  layout.dp = as_double(devices_of(s, s.cards) / c.tp);
  layout.ep = as_double(c.ep);
  return layout;
}

sim_hw::TrainShape packed_shape(const SimulationSettings& s,
                                const sim_hw::Layout& layout,
                                std::int64_t micro_batches,
                                Tokens tokens) {
  sim_hw::TrainShape shape = sim_hw::default_shape(s.model);
  const std::int64_t cut = layout.tp * layout.cp;
  shape.micro_batch = 1;
  shape.global_batch = micro_batches * layout.dp;
  shape.seq = (tokens.count() + cut - 1) / cut * cut;
  shape.recompute = sim_hw::Recompute::Full;
  shape.states.gradient = 2;
  return shape;
}

sim_hw::TrainShape training_shape(const SimulationSettings& s,
                                  const sim_hw::Layout& layout,
                                  std::int64_t micro_batches,
                                  Tokens tokens) {
  sim_hw::TrainShape shape = packed_shape(s, layout, micro_batches, tokens);
  shape.mechanisms = s.config.trainer.mechanisms;
  return shape;
}

Status check_trainer(const SimulationSettings& s) {
  const sim_hw::Layout layout = trainer_layout(s);
  const std::int64_t devices = devices_of(s, s.trainer_cards);
  if (layout.dp < 1) {
    return invalid_input(fmt::format("tp * pp * cp = {} * {} * {} = {} devices, but there are {}",
                                     layout.tp,
                                     layout.pp,
                                     layout.cp,
                                     layout.tp * layout.pp * layout.cp,
                                     devices));
  }
  return sim_hw::check_layout(trained_model(s),
                              devices,
                              layout,
                              training_shape(s, layout, 2 * layout.pp, largest_micro_batch(s)));
}

Status check_reference(const SimulationSettings& s) {
  const sim_hw::Layout layout = reference_layout(s);
  return sim_hw::check_layout(trained_model(s),
                              devices_of(s, s.cards),
                              layout,
                              packed_shape(s, layout, 2 * layout.pp, largest_micro_batch(s)));
}

Status check_rollout(const SimulationSettings& s) {
  const RolloutEngineConfig& c = s.config.rollout;
  if (c.tp < 1)
    return invalid_input("tp=0: must be 1 or more; nearest: tp=1");
  return sim_hw::check_rollout_layout(
      s.model, s.cluster, s.cards, {c.tp, devices_of(s, s.cards) / c.tp, c.ep});
}

ActorMemory rollout_memory(const SimulationSettings& s) {
  const sim_hw::RolloutLayout layout = rollout_layout(s);
  ActorMemory memory;
  memory.device = engine_ledger(s, layout);
  memory.device.kv_cache = kv_blocks(s, layout, memory.device) * as_double(s.config.rollout.block) *
                           kv_token_bytes(s, layout);
  if (!s.colocated) {
    memory.device.communication = std::min(kBucketBytes, memory.device.weights);
    memory.host.weights = memory.device.weights;
  }
  return memory;
}

Tokens kv_tokens(const SimulationSettings& s) {
  const sim_hw::RolloutLayout layout = rollout_layout(s);
  const double blocks = kv_blocks(s, layout, engine_ledger(s, layout));
  return Tokens(static_cast<std::int64_t>(blocks)) * s.config.rollout.block;
}

ActorMemory trainer_memory(const SimulationSettings& s) {
  return trainer_memory(s, 2 * s.config.trainer.pp, largest_micro_batch(s));
}

ActorMemory trainer_memory(const SimulationSettings& s,
                           std::int64_t micro_batches,
                           Tokens longest) {
  const sim_hw::Layout layout = trainer_layout(s);
  const sim_hw::Ledger ledger = sim_hw::worst_train_ledger(
      trained_model(s), layout, training_shape(s, layout, micro_batches, longest));
  return sim_hw::place(ledger,
                       s.config.trainer.optimizer_on_host ? sim_hw::TrainerState::OptimizerOnHost
                                                          : sim_hw::TrainerState::Active);
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
  return {sim_hw::inference_ledger(trained_model(s), layout, shape), {}};
}

WeightPublication publish_weights(const sim_hw::Fabric& fabric, const SimulationSettings& s) {
  const sim_hw::ReshardTraffic traffic = publication(fabric, s);
  WeightPublication out;
  for (const auto& device : traffic.received)
    out.received.add({device}, 1 / as_double(engines_of(s)));
  const double network = sim_hw::reshard_seconds(fabric, traffic, {.bucket_bytes = kBucketBytes});
  const double share = s.config.publication.link_share;
  out.seconds = network / share;
  if (s.colocated)
    return out;
  // The last bucket's copy to the host follows its transfer; where copies are slower, they are what
  // the first transfer precedes.
  const double bytes = traffic.most_received();
  const double buckets = std::max(1.0, std::ceil(bytes / kBucketBytes - 1e-9));
  const double host = bytes * fabric.from_device;
  out.seconds =
      ((network + host) / buckets + (buckets - 1) / buckets * std::max(network, host)) / share +
      buckets * fabric.host_latency;
  return out;
}

double publish_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& s) {
  return publish_weights(fabric, s).seconds;
}

double swap_bytes(const SimulationSettings& s) {
  return s.colocated ? 0 : engine_ledger(s, rollout_layout(s)).weights;
}

double swap_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& s) {
  const double tensors = as_double(s.model.layers) * sim_hw::kTensorsPerLayer;
  const double naming = tensors * s.cluster.constants.operators.host_kernel;
  if (s.colocated)
    return naming;
  return naming + onload_seconds(fabric, s, swap_bytes(s));
}

double moved_bytes(const ActorMemory& memory) {
  return memory.device.weights + memory.device.optimizer;
}

double onload_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& s, double bytes) {
  return sim_hw::to_device_seconds(fabric, bytes) / s.config.publication.link_share;
}

double offload_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& s, double bytes) {
  return sim_hw::from_device_seconds(fabric, bytes) / s.config.publication.link_share;
}

double cache_seconds(const SimulationSettings& s) {
  return rollout_memory(s).device.kv_cache /
         (s.cluster.die.memory_bandwidth.count() * s.cluster.constants.operators.memory_efficiency);
}

double load_seconds(const sim_hw::Fabric& fabric, const ActorMemory& memory) {
  return sim_hw::to_device_seconds(fabric, moved_bytes(memory));
}

}  // namespace temper::actors
