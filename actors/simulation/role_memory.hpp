// Peak memory of each role of a simulated run, per device and per share of its host. Roles that
// share cards: memory_phases.hpp. Based on the ledgers of sim_hw/memory/ledger.hpp. A critic has
// weights, gradients and optimizer states of its own beside the policy's; activations are those of
// one network, because the two take turns. Bytes are
// doubles here and become Bytes in messages.
//
// Staging. On exclusive cards a new version arrives in host memory while the engine generates (two
// copies do not fit on a device), and is copied to the devices at the commit. On co-located cards
// it is resharded on the devices beside the trainer's weights, and the commit only renames it.
// Adapter (SimulatedRun::adapter). A version is the adapter alone, in BF16. Trainer, engine and
// reference each hold the frozen weights once, in their format. An engine on exclusive cards keeps
// them; on co-located cards they are resharded from the trainer's at every role switch, and the
// trainer's go to its hosts and return, as trained weights do.
// EAGLE draft. In the engine's format, and no part of a version. Its layer caches tokens like one
// of the model. It stays on the devices, also while other roles have the cards.
//
// Tensors of responses (simulation.tensors). In host memory: those of a step at the trainer while
// it trains, and evenly over all engines those of every response that may be outstanding
// (tensor_fetch.hpp), whatever role has the cards.
//
// Constants: kBucketBytes is an assumption (published buckets have 0.5 to 2 GB).
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "sim_hw/memory/ledger.hpp"

namespace temper::actors {

inline constexpr double kBucketBytes = 1e9;

/// Memory of one device of an actor and of its share of host memory.
using ActorMemory = sim_hw::PlacedLedger;

/// Capacity of a device, and of its share of host memory.
double device_capacity(const sim_hw::HardwareSpec& hardware);
double host_capacity(const sim_hw::HardwareSpec& hardware);

// For the run:
double device_capacity(const SimulatedRun& run);
double host_capacity(const SimulatedRun& run);
/// Total bytes of a role on the devices of `cards` cards.
Bytes bytes_on(const SimulatedRun& run, std::int64_t cards, double per_device);
/// Bytes that move when a role starts or changes places: weights and optimizer states.
double moved_bytes(const ActorMemory& memory);

// Every function below requires that the check of its role (role_layouts.hpp) succeeds.

// For the trainer:
/// Memory between forward and backward of the longest micro-batch.
ActorMemory trainer_memory(const SimulatedRun& run);
/// The same for an update whose replicas have `micro_batches` of at most `longest` tokens.
ActorMemory trainer_memory(const SimulatedRun& run, std::int64_t micro_batches, Tokens longest);

enum class Gradients { Dropped, Kept };
/// Host memory of a trainer whose cards others have: weights, optimizer states, and the gradients
/// of a part of a batch, if they are kept; without tensors of responses.
sim_hw::Ledger parked(const ActorMemory& trainer, Gradients gradients);

// For a reference:
ActorMemory reference_memory(const SimulationSettings& reference);
/// The same for a pass whose longest micro-batch has `longest` tokens.
ActorMemory reference_memory(const SimulationSettings& reference, Tokens longest);

// For a rollout engine:
/// Bytes of a weight in its format.
double bytes_per_weight(const SimulationSettings& engine);
/// Bytes on one device of an EAGLE draft; 0 without one.
double frozen_draft_bytes(const SimulationSettings& engine);
/// Bytes on one device of a cached token, in all layers and those that draft.
double kv_token_bytes(const SimulationSettings& engine);
/// Peak: weights, the KV cache (kv_share of the memory left by weights, in whole blocks), prefill
/// workspace and logits. On exclusive cards the staged version is in host memory. With
/// prefill_cards, that of the instance with more, for the device and the host each.
ActorMemory rollout_memory(const SimulationSettings& engine);
/// The same of a device that decodes, which keeps room for prefill workspace in any case; without
/// tensors of responses.
ActorMemory decode_memory(const SimulationSettings& engine);
/// The same while a version arrives in host memory beside the one in use, on shared cards.
ActorMemory renewing(const SimulationSettings& engine);
/// Tokens of KV cache of one replica that decodes (tp devices), in whole blocks.
Tokens kv_tokens(const SimulationSettings& engine);
/// Responses that fill the KV cache of all replicas of an engine, each with the mean context of a
/// running response; at least 1. Requires also: check_lengths() succeeds for prompt and response.
std::int64_t kv_slots(const SimulationSettings& engine);
/// Bytes of one version on one device: the weights, or the adapter. With prefill_cards, on a device
/// of the instance with more.
double version_bytes(const SimulationSettings& engine);
/// The same on a device that decodes.
double decoded_version(const SimulationSettings& engine);
/// Bytes that a commit copies from the host to one device.
double swap_bytes(const SimulationSettings& engine);

}  // namespace temper::actors
