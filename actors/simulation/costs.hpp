// What the roles of a simulated run cost beyond their steps: where their bytes are, how weights get
// from the trainer to the engines, how roles are laid out. Built on sim_hw; bytes and seconds are
// doubles here and become Bytes and Duration where they enter a message.
//
// Assumed. Trainer: distributed optimizer (ZeRO 1), sequence parallelism where tp > 1, every layer
// recomputed, bf16 gradients, MTP modules not trained: the published recipe of the 718B model, as
// sim_hw/iteration/cluster.hpp has it. Engine: bf16 weights and cache.
// Staging. On own cards a new version arrives in the host memory of its engine while it generates
// (two copies do not fit a device), and is copied to the devices when it is committed. Co-located,
// it is resharded inside the cards, beside the trainer's weights, and committing is renaming.
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
// Not counted: filling the relay's chain, one bucket's transfer for each replica in it.
// Constants: those of the hardware; kBucketBytes is assumed (published buckets are 0.5 to 2 GB).
// Range: links alone, divided by publication.link_share. Engines that rename, cast and load tensor
// by tensor took 10 to 40 times as long in published measurements.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "core/result.hpp"
#include "sim_hw/layout/layout.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/network/collectives.hpp"
#include "sim_hw/steps/parallel_decode.hpp"

namespace temper::actors {

inline constexpr double kBucketBytes = 1e9;

/// Of one device of an actor, and its share of its host's memory.
using ActorMemory = sim_hw::PlacedLedger;
double device_capacity(const SimulationSettings& settings);
double host_capacity(const SimulationSettings& settings);
/// Sum of a role's bytes on the devices of `cards` cards.
Bytes bytes_on(const SimulationSettings& settings, std::int64_t cards, double per_device);

/// Longest prompt or response that the configuration can draw.
Tokens longest(const LengthConfig& lengths);
/// Tokens of the longest micro-batch: what it packs, or one longest sequence.
Tokens largest_micro_batch(const SimulationSettings& settings);

/// The model as it is trained: without MTP modules.
sim_hw::ModelSpec trained_model(const SimulationSettings& settings);
/// Over the trainer's cards; dp is what tp, pp and cp leave, 0 where they need more.
sim_hw::Layout trainer_layout(const SimulationSettings& settings);
/// Over this actor's cards: the trainer's, cut down to what divides them.
sim_hw::Layout reference_layout(const SimulationSettings& settings);
/// The layout of one engine over this actor's cards.
sim_hw::RolloutLayout rollout_layout(const SimulationSettings& settings);
/// `micro_batches` of each replica, one sequence of `tokens` each, rounded up to what tp and cp
/// divide.
sim_hw::TrainShape packed_shape(const SimulationSettings& settings,
                                const sim_hw::Layout& layout,
                                std::int64_t micro_batches,
                                Tokens tokens);
/// The shape of the trainer's update, with its mechanisms.
sim_hw::TrainShape training_shape(const SimulationSettings& settings,
                                  const sim_hw::Layout& layout,
                                  std::int64_t micro_batches,
                                  Tokens tokens);

/// Whether the layouts divide the model and the cards; names the nearest that do. With no regard to
/// memory. Requires of all functions below that their role's check is well.
Status check_trainer(const SimulationSettings& settings);
Status check_reference(const SimulationSettings& settings);
Status check_rollout(const SimulationSettings& settings);

/// At its fullest: weights, the KV cache (kv_share of what weights leave, in whole blocks), prefill
/// working set and logits. On own cards the staged version is in host memory.
ActorMemory rollout_memory(const SimulationSettings& settings);
/// Tokens of KV cache of one replica (tp devices), in whole blocks.
Tokens kv_tokens(const SimulationSettings& settings);
/// Between forward and backward of the longest micro-batch.
ActorMemory trainer_memory(const SimulationSettings& settings);
/// The same of an update whose replicas have `micro_batches` of at most `longest` tokens.
ActorMemory trainer_memory(const SimulationSettings& settings,
                           std::int64_t micro_batches,
                           Tokens longest);
ActorMemory reference_memory(const SimulationSettings& settings);
/// The same of a pass whose longest micro-batch has `longest` tokens.
ActorMemory reference_memory(const SimulationSettings& settings, Tokens longest);

/// How a version comes to the engines.
struct WeightPublication {
  double seconds = 0;           ///< As publish_seconds().
  sim_hw::LevelBytes received;  ///< By the devices of one engine, all together.
};
WeightPublication publish_weights(const sim_hw::Fabric& fabric, const SimulationSettings& settings);
/// From the end of an update until every engine has staged its weights.
double publish_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& settings);
/// What a commit copies from the host, of one device.
double swap_bytes(const SimulationSettings& settings);
/// From staged to in use, during which an engine does not step.
double swap_seconds(const sim_hw::Fabric& fabric, const SimulationSettings& settings);
/// What of a role is moved when it starts or changes places: weights and optimizer states.
double moved_bytes(const ActorMemory& memory);
/// Of weights and optimizer states that change places in a role switch, per device.
double onload_seconds(const sim_hw::Fabric& fabric,
                      const SimulationSettings& settings,
                      double bytes);
double offload_seconds(const sim_hw::Fabric& fabric,
                       const SimulationSettings& settings,
                       double bytes);
/// Seconds to allocate the KV cache, which clears it.
double cache_seconds(const SimulationSettings& settings);
/// Seconds of a role's start: its weights and optimizer states move from host memory to their
/// place.
double load_seconds(const sim_hw::Fabric& fabric, const ActorMemory& memory);

}  // namespace temper::actors
