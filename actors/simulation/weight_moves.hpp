// Time for moving weights in a simulated run: from the trainer to the engines, and between a device
// and its host when a role starts, commits a version or changes places. Memory: role_memory.hpp.
// Seconds are doubles here and become a Duration in messages.
//
// Publication, where the busiest engine device receives R bytes in n buckets:
//   network = reshard_seconds(): the busiest port, each shard sent by a device that has it.
//             relay: the first replica of the engines receives from the trainer, every other from
//             the replica before it, which passes a bucket on as it receives the next, so that no
//             port carries a shard more than once: nearly the same for any number of engines.
//             broadcast: every replica receives from the trainer, replica i from the trainer's copy
//             i (mod copies); a sender's port carries every copy it serves, so that the time grows
//             with replicas / copies. Between supernodes either crosses their RDMA ports: broadcast
//             once for each replica of another supernode, relay once for each border.
//   exclusive cards: then R to the host over the device's link, overlapping with the network
//   t = (network + host) / n + (n - 1) / n max(network, host) + n start-ups
//   prefill_cards: the prefill instances of all engines receive after the other cards, likewise;
//             both times are added
//   trainer in another cluster: network = publish_across() of sim_hw/network/cluster_link.hpp, in
//             which the link between the clusters and the ports toward it are limits as well
// With an adapter (role_memory.hpp) a version is the adapter, and what is resharded in a role
// switch is the frozen weights beside it. The trainer casts to the engines' format, bucket by
// bucket, before it sends: bytes are those of that format. Not counted: the cast, which moves 3
// bytes of device memory per byte sent while the bucket before it is on a slower link; filling the
// relay chain, one bucket transfer per replica (sim_hw/network/hosts.hpp counts it for hosts, whose
// links are slow). Constants: those of the hardware; and kBucketBytes. Range: links alone, divided
// by publication.link_share. Engines that rename, cast and load tensor by tensor took 10 to 40
// times as long in published measurements; simulation.framework adds that, as stages
// (sim_hw/framework/framework.hpp). Stages of a publication come before the engine reports its
// weights as staged; those of a role switch are in onload_seconds() and offload_seconds(). Neither
// are in the commit of staged weights, a role's start, or copies between cards.
#pragma once

#include "actors/simulation/role_memory.hpp"
#include "sim_hw/network/collectives.hpp"

#include <optional>

namespace temper::actors {

// For a rollout engine:
/// Publication of a version to the engines.
struct WeightPublication {
  double seconds = 0;  ///< See publish_seconds().
  /// Bytes received by all devices of one engine; after the levels of its cluster, the link between
  /// clusters.
  sim_hw::LevelBytes received;
};
/// Takes time in proportion to the cards of all engines.
WeightPublication publish_weights(const sim_hw::Fabric& fabric, const SimulationSettings& engine);
/// Seconds from the end of an update until every engine has staged its weights.
double publish_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& engine);
/// Seconds to activate staged weights; the engine does not step meanwhile.
double swap_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& engine);
/// Publication to an engine on shared cards that continues generating while other cards switch
/// roles (placement.switching: one_by_one). The whole version moves to its devices, bucket by
/// bucket, and then to its hosts, without overlap and ignoring shards already in place; with
/// broadcast each port of the trainer sends it once per engine. An upper bound.
WeightPublication publish_beside(const sim_hw::Fabric& fabric, const SimulationSettings& engine);
/// The publications to engines of equal settings, each computed when one of them first needs it.
struct Publications {
  std::optional<WeightPublication> whole;   ///< publish_weights()
  std::optional<WeightPublication> beside;  ///< publish_beside()
};
/// Seconds from its hosts to its devices, between two steps.
double swap_beside_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& engine);
/// Seconds to allocate and clear the KV cache.
double cache_seconds(const SimulationSettings& engine);

// For any role:
/// Seconds to move weights and optimizer states in a role switch; `bytes` is per device.
double onload_seconds(const sim_hw::Fabric& fabric, const SimulatedRun& run, double bytes);
double offload_seconds(const sim_hw::Fabric& fabric, const SimulatedRun& run, double bytes);
/// The cards that roles share, consecutive from the first of a supernode on.
struct SharedCards {
  std::int64_t cards = 1;
  std::int64_t dies_per_card = 1;
};
/// Seconds in which each device sends `bytes` to another one over the innermost fabric level that
/// connects all devices of the shared cards.
double fabric_seconds(const sim_hw::Fabric& fabric,
                      const SimulatedRun& run,
                      const SharedCards& shared,
                      double bytes);
/// The bytes that each device sends meanwhile.
sim_hw::LevelBytes fabric_traffic(const sim_hw::Fabric& fabric,
                                  const SharedCards& shared,
                                  double bytes);
/// Seconds of a role's start: its weights and optimizer states move from host memory to their
/// place.
double load_seconds(const sim_hw::Fabric& fabric, const ActorMemory& memory);

}  // namespace temper::actors
