#include "actors/simulation/weight_moves.hpp"

#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "sim_hw/memory/weights.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/network/reshard.hpp"
#include "sim_hw/steps/adapter_products.hpp"
#include "sim_hw/steps/steps.hpp"

#include <algorithm>
#include <cmath>

namespace temper::actors {
namespace {

using sim_hw::as_double;

std::int64_t engines_of(const SimulationSettings& s) {
  return std::max<std::int64_t>(1, s.rollout_cards / s.cards);
}

/// All engines have the same number of cards, so together they are more replicas of one engine.
sim_hw::ShardLayout engine_shards(const SimulationSettings& s, std::int64_t first_device = 0) {
  const sim_hw::RolloutLayout engine = rollout_layout(s);
  return {.tp = static_cast<std::int64_t>(engine.tp),
          .pp = 1,
          .dp = static_cast<std::int64_t>(engine.dp) * engines_of(s),
          .ep = static_cast<std::int64_t>(engine.ep),
          .first_device = first_device};
}

sim_hw::ShardLayout trainer_shards(const SimulationSettings& s, std::int64_t first_device) {
  const sim_hw::Layout training = trainer_layout(s);
  return {.tp = training.tp,
          .pp = training.pp,
          .dp = training.dp * training.cp,
          .ep = training.ep,
          .first_device = first_device};
}

/// The engine's model in the engine's format. An MTP module is a layer of the last kind behind a
/// projection of two hidden states. The bytes of redundant experts are taken from all experts
/// alike.
sim_hw::WeightVolume whole_weights(const SimulationSettings& s) {
  const sim_hw::ModelSpec model = engine_model(s);
  const double bytes = bytes_per_weight(s);
  sim_hw::WeightVolume out = sim_hw::weight_volume(model, bytes);
  for (std::int64_t module = 0; module < model.mtp_layers; ++module) {
    out.layers.push_back(out.layers.back() + as_double(2 * model.hidden * model.hidden) * bytes);
    out.experts.push_back(out.experts.back());
  }
  if (s.config.rollout.redundant_experts > 0) {
    const double experts = as_double(model.moe->experts);
    for (double& layer : out.experts)
      layer *= (experts + as_double(s.config.rollout.redundant_experts)) / experts;
  }
  return out;
}

/// Adds the adapter of every layer. A replica's devices get what all of them hold whole once each.
void add_adapter(const SimulationSettings& s, sim_hw::WeightVolume& out) {
  const sim_hw::ModelSpec model = engine_model(s);
  sim_hw::Layout replica;
  replica.tp = s.config.rollout.tp;
  replica.redundant_experts = s.config.rollout.redundant_experts;
  const sim_hw::LayerParameters each = sim_hw::layer_parameters(model, replica, *s.adapter);
  const double bytes = sim_hw::kAdapterBytes * as_double(replica.tp);
  const std::int64_t blocks = model.layers + model.mtp_layers;
  out.layers.resize(static_cast<std::size_t>(blocks));
  out.experts.resize(static_cast<std::size_t>(blocks));
  for (std::int64_t l = 0; l < blocks; ++l) {
    const bool routed = model.moe && l >= model.dense_layers();
    out.layers[static_cast<std::size_t>(l)] +=
        (each.attention + (routed ? each.shared : each.dense)) * bytes;
    if (routed)
      out.experts[static_cast<std::size_t>(l)] += each.experts * sim_hw::kAdapterBytes;
  }
}

/// What moves to an engine with a version. Engines on co-located cards do not keep frozen weights
/// while others use the cards.
sim_hw::WeightVolume published(const SimulationSettings& s) {
  if (!s.adapter)
    return whole_weights(s);
  sim_hw::WeightVolume out = s.colocated ? whole_weights(s) : sim_hw::WeightVolume{};
  add_adapter(s, out);
  return out;
}

/// Copies alone, as a framework uses the links.
double to_device(const sim_hw::Fabric& fabric, const SimulatedRun& s, double bytes) {
  return sim_hw::to_device_seconds(fabric, bytes) / s.config.publication.link_share;
}

double from_device(const sim_hw::Fabric& fabric, const SimulatedRun& s, double bytes) {
  return sim_hw::from_device_seconds(fabric, bytes) / s.config.publication.link_share;
}

/// What the framework adds to a publication, of which a device of an engine holds `device_bytes`.
double added_to_publication(const SimulationSettings& s, double device_bytes) {
  if (!s.framework)
    return 0;
  sim_hw::ModelSpec model = engine_model(s);
  model.layers += model.mtp_layers;
  sim_hw::MovedWeights weights;
  if (!s.adapter || s.colocated)
    weights.tensors += sim_hw::weight_tensors(model);
  if (s.adapter)
    weights.tensors += sim_hw::weight_tensors(model, *s.adapter);
  weights.version_bytes = published(s).total();
  weights.device_bytes = device_bytes;
  return sim_hw::stages_seconds(s.framework->publication, weights);
}

/// What it adds to a state of a role switch that moves `bytes` of a device.
double added_to_switch(const SimulatedRun& s, double bytes) {
  if (!s.framework || bytes <= 0)
    return 0;
  return sim_hw::stages_seconds(s.framework->role_switch, {.device_bytes = bytes});
}

/// Network traffic, and its duration alone.
struct Transfer {
  sim_hw::ReshardTraffic traffic;
  double seconds = 0;
};

/// The innermost level that joins all devices of the cards that roles share.
std::size_t level_of(const sim_hw::Fabric& fabric, const SharedCards& shared) {
  const double devices = as_double(shared.cards * shared.dies_per_card);
  std::size_t level = 0;
  while (level + 1 < fabric.level_count && fabric.levels[level].devices < devices)
    ++level;
  return level;
}

/// The engines' cards come first, then the trainer's, unless they are the same.
Transfer inside(const sim_hw::Fabric& fabric,
                const SimulationSettings& s,
                const sim_hw::ShardLayout& to,
                sim_hw::FanOut how) {
  const std::int64_t devices = s.cards * s.cluster.dies_per_card * engines_of(s);
  const sim_hw::ShardLayout from = trainer_shards(s, s.colocated ? 0 : devices);
  Transfer out{sim_hw::reshard_traffic(fabric, published(s), from, to, how), 0};
  out.seconds = sim_hw::reshard_seconds(fabric, out.traffic, {.bucket_bytes = kBucketBytes});
  return out;
}

Transfer across(const sim_hw::Fabric& fabric,
                const SimulationSettings& s,
                const sim_hw::ShardLayout& to,
                sim_hw::FanOut how) {
  const sim_hw::Fabric training = sim_hw::make_fabric(hardware_of(s, RoleKind::Trainer));
  const sim_hw::ShardLayout from = trainer_shards(s, 0);
  sim_hw::CrossPublication crossed =
      sim_hw::publish_across(link_between(s),
                             {training, port_of(s, RoleKind::Trainer), from},
                             {fabric, port_of(s, RoleKind::Rollout), to},
                             published(s),
                             how,
                             kBucketBytes);
  return {std::move(crossed.traffic), crossed.seconds};
}

/// To these devices of all engines.
WeightPublication publish_to(const sim_hw::Fabric& fabric,
                             const SimulationSettings& s,
                             const sim_hw::ShardLayout& to) {
  const bool relay = s.config.publication.mode == PublicationMode::Relay;
  const sim_hw::FanOut how = relay ? sim_hw::FanOut::Tree : sim_hw::FanOut::Direct;
  const bool apart = are_apart(s, RoleKind::Rollout, RoleKind::Trainer);
  const auto [traffic, network] = apart ? across(fabric, s, to, how) : inside(fabric, s, to, how);
  WeightPublication out;
  for (const auto& device : traffic.received)
    out.received.add({device}, 1 / as_double(engines_of(s)));
  const double share = s.config.publication.link_share;
  out.seconds = network / share;
  if (s.colocated)
    return out;
  // The last bucket's copy to the host follows its transfer. If copies are slower, they follow the
  // first transfer instead.
  const double bytes = traffic.most_received();
  const double buckets = std::max(1.0, std::ceil(bytes / kBucketBytes - 1e-9));
  const double host = bytes * fabric.from_device;
  out.seconds =
      ((network + host) / buckets + (buckets - 1) / buckets * std::max(network, host)) / share +
      buckets * fabric.host_latency;
  return out;
}

}  // namespace

WeightPublication publish_weights(const sim_hw::Fabric& fabric, const SimulationSettings& s) {
  const sim_hw::ShardLayout decoding = engine_shards(s);
  WeightPublication out = publish_to(fabric, s, decoding);
  if (s.config.rollout.prefill_cards > 0) {
    const sim_hw::ShardLayout prefill = engine_shards(prefill_instance(s), decoding.devices());
    const WeightPublication then = publish_to(fabric, s, prefill);
    out.seconds += then.seconds;
    out.received.add(then.received);
  }
  out.seconds += added_to_publication(s, version_bytes(s));
  return out;
}

double publish_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& s) {
  return publish_weights(fabric, s).seconds;
}

double swap_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& s) {
  const double tensors = as_double(s.model.layers) * sim_hw::kTensorsPerLayer;
  const double naming = tensors * s.cluster.constants.operators.host_kernel;
  if (s.colocated)
    return naming;
  return naming + to_device(fabric, s, swap_bytes(s));
}

WeightPublication publish_beside(const sim_hw::Fabric& fabric, const SimulationSettings& s) {
  const double bytes = version_bytes(s);
  const double devices = as_double(s.cards * s.cluster.dies_per_card);
  const SharedCards shared{s.rollout_cards, s.cluster.dies_per_card};
  const bool relay = s.config.publication.mode == PublicationMode::Relay;
  WeightPublication out;
  out.received.add(fabric_traffic(fabric, shared, bytes), devices);
  out.seconds = fabric_seconds(fabric, s, shared, bytes) * (relay ? 1 : as_double(engines_of(s))) +
                from_device(fabric, s, bytes) + added_to_publication(s, bytes);
  return out;
}

double swap_beside_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& s) {
  return swap_seconds(fabric, s) + to_device(fabric, s, version_bytes(s));
}

double cache_seconds(const SimulationSettings& s) {
  double bytes = decode_memory(s).device.kv_cache;
  if (s.config.rollout.prefill_cards > 0)
    bytes = std::max(bytes, decode_memory(prefill_instance(s)).device.kv_cache);
  return bytes /
         (s.cluster.die.memory_bandwidth.count() * s.cluster.constants.operators.memory_efficiency);
}

double onload_seconds(const sim_hw::Fabric& fabric, const SimulatedRun& s, double bytes) {
  return to_device(fabric, s, bytes) + added_to_switch(s, bytes);
}

double offload_seconds(const sim_hw::Fabric& fabric, const SimulatedRun& s, double bytes) {
  return from_device(fabric, s, bytes) + added_to_switch(s, bytes);
}

double fabric_seconds(const sim_hw::Fabric& fabric,
                      const SimulatedRun& s,
                      const SharedCards& shared,
                      double bytes) {
  const sim_hw::Fabric::Level& level = fabric.levels[level_of(fabric, shared)];
  return bytes * level.seconds_per_byte * fabric.p2p.slowdown / s.config.publication.link_share +
         level.latency;
}

sim_hw::LevelBytes fabric_traffic(const sim_hw::Fabric& fabric,
                                  const SharedCards& shared,
                                  double bytes) {
  sim_hw::LevelBytes out;
  out.at[level_of(fabric, shared)] = bytes;
  return out;
}

double load_seconds(const sim_hw::Fabric& fabric, const ActorMemory& memory) {
  return sim_hw::to_device_seconds(fabric, moved_bytes(memory));
}

}  // namespace temper::actors
