// Seconds of moving weights in a simulated run: from the trainer to the engines, and between a
// device and its host when a role starts, takes over a version or changes places. Where the bytes
// are: role_memory.hpp. Seconds are doubles here and become a Duration where they enter a message.
//
// Publication, with the bytes R that the busiest engine device receives, in n buckets:
//   network = reshard_seconds(): the busiest port, each shard from a device that holds it.
//             relay: the first replica of the engines receives from the trainer, every other from
//             the replica before it, which passes a bucket on as it receives the next, so that no
//             port carries a shard more than once: nearly the same for any number of engines.
//             broadcast: every replica receives from the trainer, replica i from the trainer's copy
//             i (mod copies); a sender's port carries every copy it serves, so that the time grows
//             with replicas / copies. Between supernodes either crosses their RDMA ports: broadcast
//             once for each replica of another supernode, relay once for each border.
//   own cards: then R to the host over the device's link, the two overlapping
//   t = (network + host) / n + (n - 1) / n max(network, host) + n start-ups
//   trainer in another cluster: network = publish_across() of sim_hw/network/cluster_link.hpp, in
//             which the link between the clusters and the ports towards it bound as well
// Not counted: filling the relay's chain, one bucket's transfer for each replica in it
// (sim_hw/network/hosts.hpp counts it for hosts, whose links are slow).
// Constants: those of the hardware; and kBucketBytes.
// Range: links alone, divided by publication.link_share. Engines that rename, cast and load tensor
// by tensor took 10 to 40 times as long in published measurements.
#pragma once

#include "actors/simulation/role_memory.hpp"
#include "sim_hw/network/collectives.hpp"

namespace temper::actors {

// Of a rollout engine.
/// How a version comes to the engines.
struct WeightPublication {
  double seconds = 0;  ///< As publish_seconds().
  /// By the devices of one engine, all together; behind the levels of its cluster, the link.
  sim_hw::LevelBytes received;
};
WeightPublication publish_weights(const sim_hw::Fabric& fabric, const SimulationSettings& engine);
/// From the end of an update until every engine has staged its weights.
double publish_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& engine);
/// From staged to in use, during which an engine does not step.
double swap_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& engine);
/// The same of an engine on shared cards that goes on generating while others' cards change role
/// (placement.switching: one_by_one): the version comes whole to its devices, bucket by bucket, and
/// from them to its hosts, the two one after the other, as if nothing lay where it is needed; by
/// broadcast each port of the trainer carries it for every engine. An upper limit.
WeightPublication publish_beside(const sim_hw::Fabric& fabric, const SimulationSettings& engine);
/// And from its hosts to its devices, between two steps.
double swap_beside_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& engine);
/// Seconds to allocate the KV cache, which clears it.
double cache_seconds(const SimulationSettings& engine);

// Of any role.
/// Of weights and optimizer states that change places in a role switch, per device.
double onload_seconds(const sim_hw::Fabric& fabric, const SimulatedRun& run, double bytes);
double offload_seconds(const sim_hw::Fabric& fabric, const SimulatedRun& run, double bytes);
/// Seconds in which each device sends so many bytes to another one, over the level of the fabric
/// that joins all devices of the cluster.
double fabric_seconds(const sim_hw::Fabric& fabric, const SimulatedRun& run, double bytes);
/// Of a role's start: its weights and optimizer states move from host memory to their place.
double load_seconds(const sim_hw::Fabric& fabric, const ActorMemory& memory);

}  // namespace temper::actors
