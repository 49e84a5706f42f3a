#include "actors/simulation/weight_moves.hpp"

#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/network/reshard.hpp"
#include "sim_hw/steps/steps.hpp"

#include <algorithm>
#include <cmath>

namespace temper::actors {
namespace {

using sim_hw::as_double;

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

double swap_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& s) {
  const double tensors = as_double(s.model.layers) * sim_hw::kTensorsPerLayer;
  const double naming = tensors * s.cluster.constants.operators.host_kernel;
  if (s.colocated)
    return naming;
  return naming + onload_seconds(fabric, s, swap_bytes(s));
}

WeightPublication publish_beside(const sim_hw::Fabric& fabric, const SimulationSettings& s) {
  const double bytes = rollout_memory(s).device.weights;
  const double devices = as_double(s.cards * s.cluster.dies_per_card);
  const std::int64_t all = s.cluster.cards() * s.cluster.dies_per_card;
  const bool relay = s.config.publication.mode == PublicationMode::Relay;
  WeightPublication out;
  out.received.add(sim_hw::p2p_traffic(fabric, all, bytes), devices);
  out.seconds = fabric_seconds(fabric, s, bytes) * (relay ? 1 : as_double(engines_of(s))) +
                offload_seconds(fabric, s, bytes);
  return out;
}

double swap_beside_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& s) {
  return swap_seconds(fabric, s) + onload_seconds(fabric, s, rollout_memory(s).device.weights);
}

double cache_seconds(const SimulationSettings& s) {
  return rollout_memory(s).device.kv_cache /
         (s.cluster.die.memory_bandwidth.count() * s.cluster.constants.operators.memory_efficiency);
}

double onload_seconds(const sim_hw::Fabric& fabric, const SimulatedRun& s, double bytes) {
  return sim_hw::to_device_seconds(fabric, bytes) / s.config.publication.link_share;
}

double offload_seconds(const sim_hw::Fabric& fabric, const SimulatedRun& s, double bytes) {
  return sim_hw::from_device_seconds(fabric, bytes) / s.config.publication.link_share;
}

double fabric_seconds(const sim_hw::Fabric& fabric, const SimulatedRun& s, double bytes) {
  const double devices = as_double(s.cluster.cards() * s.cluster.dies_per_card);
  std::size_t level = 0;
  while (level + 1 < fabric.level_count && fabric.levels[level].devices < devices)
    ++level;
  const sim_hw::Fabric::Level& widest = fabric.levels[level];
  return bytes * widest.seconds_per_byte * fabric.p2p.slowdown / s.config.publication.link_share +
         widest.latency;
}

double load_seconds(const sim_hw::Fabric& fabric, const ActorMemory& memory) {
  return sim_hw::to_device_seconds(fabric, moved_bytes(memory));
}

}  // namespace temper::actors
