// Memory of every device, and of its share of host memory, in each phase of a card group: the
// roles present and which of their bytes (role_memory.hpp) they hold.
//
// Cards with the same roles form a group. Phases of a group, in the order of the role switch
// (orchestrator/scheduler/sharing/role_switch.hpp). T: trainer, E: engine, R: reference. Idle roles
// are in host memory unless stated otherwise:
//   exclusive trainer cards    train     T in full
//                              publish   T without activations, one bucket
//   exclusive rollout cards    rollout   E in full, the staged version in host memory
//   exclusive reference cards  score     R
//   shared cards               train              T in full, the remainder of an idle E
//                              offload_optimizer  T without activations, on device and host at once
//                              reshard, bind      T's weights stay, E's arrive; one bucket
//                              kv_alloc           E with its cache; the remainder of an idle T
//                              rollout            E in full
//                              renew              E in full, the staged version in host memory, one
//                                                 bucket (where engines switch one by one)
//                              free_kv            E's weights
//                              onload_reference   R's weights on device and host (fused)
//                              score              R in full, T parked (fused)
//                              onload             T without activations, on device and host
// `separate` has groups of the first three kinds, `colocated` a shared group, `fused` a shared
// group with the reference, `hybrid` exclusive rollout cards and a shared group.
// Engines' tensors of responses stay in host memory in every phase. A trainer that gives up its
// cards between parts of a batch (stragglers.prepare) keeps gradients in host memory; on shared
// cards that switch one by one, the phases of every number of engines count
// (orchestrator/pipeline/card_shares.hpp). Ledgers and range of validity: role_memory.hpp.
#pragma once

#include "actors/protocol/placement_mode.hpp"
#include "actors/simulation/role_memory.hpp"
#include "core/result.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

enum class ReferencePlace { None, Own, InTurn };

/// Placement of the roles, as counts.
struct SimulatedPlacement {
  SimulatedRun run;
  PlacementMode mode = PlacementMode::Separate;
  std::int64_t rollout_cards = 1;  ///< Where the trainer lends its cards, only the exclusive ones.
  std::int64_t engines = 1;        ///< Engines on rollout_cards.
  std::int32_t concurrency = 0;    ///< Concurrent responses per engine.
  ReferencePlace reference = ReferencePlace::None;
  std::int64_t references = 1;
  std::int64_t reference_cards = 0;  ///< Cards of all references together.
  bool one_by_one = false;           ///< Remaining engines receive new weights while they generate.
  bool keeps_gradients = false;      ///< The trainer gives up its cards between parts of a batch.
};

/// Settings of an engine on exclusive rollout cards.
SimulationSettings own_engine(const SimulatedPlacement& placement);
/// Settings of an engine on shared cards. Requires: a mode with shared cards.
SimulationSettings switching_engine(const SimulatedPlacement& placement);
/// Settings of a reference. Requires: the run has one.
SimulationSettings one_reference(const SimulatedPlacement& placement);

/// Memory of each role per device of a card group in one phase.
struct PhaseLedger {
  struct Part {
    std::string_view role;
    actors::ActorMemory memory;
  };
  std::string_view group;
  std::string_view phase;
  /// Cards that switch one by one: engines whose cards trainer and reference use.
  std::int64_t engines = 0;
  std::vector<Part> parts;
  double device_capacity = 0, host_capacity = 0;  ///< Capacities of the hardware of these cards.

  double device() const;
  double host() const;
  /// Lists every nonzero entry, in GiB.
  std::string text() const;
};

/// Computes every phase of every group. Error: a layout that does not divide the model or its
/// cards, or a KV cache smaller than one longest response.
Result<std::vector<PhaseLedger>> memory_phases(const SimulatedPlacement& placement);

/// Bytes of a device's share of host memory that no phase needs; empty if there is none, or if one
/// does not fit.
std::optional<double> host_left(const std::vector<PhaseLedger>& phases);

/// "1.50" for 1.5 GiB.
std::string gib_text(double bytes);

}  // namespace temper::actors
