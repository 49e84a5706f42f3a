// The bytes of each role of a simulated run at its fullest, per device and per share of its host.
// How roles that share cards meet in the phases of a run: memory_phases.hpp. Built on the ledgers
// of sim_hw/memory/ledger.hpp; bytes are doubles here and become Bytes where they enter a message.
//
// Staging. On own cards a new version arrives in the host memory of its engine while it generates
// (two copies do not fit a device), and is copied to the devices when it is committed. Co-located,
// it is resharded inside the cards, beside the trainer's weights, and committing is renaming.
// Constants: kBucketBytes is assumed (published buckets are 0.5 to 2 GB).
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "sim_hw/memory/ledger.hpp"

namespace temper::actors {

inline constexpr double kBucketBytes = 1e9;

/// Of one device of an actor, and its share of its host's memory.
using ActorMemory = sim_hw::PlacedLedger;

/// Of a device, and its share of its host's memory.
double device_capacity(const sim_hw::HardwareSpec& hardware);
double host_capacity(const sim_hw::HardwareSpec& hardware);

// Of the run.
double device_capacity(const SimulatedRun& run);
double host_capacity(const SimulatedRun& run);
/// Sum of a role's bytes on the devices of `cards` cards.
Bytes bytes_on(const SimulatedRun& run, std::int64_t cards, double per_device);
/// What of a role is moved when it starts or changes places: weights and optimizer states.
double moved_bytes(const ActorMemory& memory);

// Every function below requires that the check of its role (role_layouts.hpp) is well.

// Of the trainer.
/// Between forward and backward of the longest micro-batch.
ActorMemory trainer_memory(const SimulatedRun& run);
/// The same of an update whose replicas have `micro_batches` of at most `longest` tokens.
ActorMemory trainer_memory(const SimulatedRun& run, std::int64_t micro_batches, Tokens longest);

// Of a reference.
ActorMemory reference_memory(const SimulationSettings& reference);
/// The same of a pass whose longest micro-batch has `longest` tokens.
ActorMemory reference_memory(const SimulationSettings& reference, Tokens longest);

// Of a rollout engine.
/// At its fullest: weights, the KV cache (kv_share of what weights leave, in whole blocks), prefill
/// working set and logits. On own cards the staged version is in host memory.
ActorMemory rollout_memory(const SimulationSettings& engine);
/// Tokens of KV cache of one replica (tp devices), in whole blocks.
Tokens kv_tokens(const SimulationSettings& engine);
/// What a commit copies from the host, of one device.
double swap_bytes(const SimulationSettings& engine);

}  // namespace temper::actors
