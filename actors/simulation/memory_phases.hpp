// The bytes of every device, and of its share of host memory, in each phase of the cards that hold
// it: who of the roles is there, and with what of the bytes that role_memory.hpp gives it.
//
// Cards form groups that hold the same roles. Phases of a group, in the order of the switch
// (orchestrator/scheduler/sharing/role_switch.hpp); T trainer, E engine, R reference, in host memory but
// where it says otherwise:
//   own cards of the trainer   train     T in full
//                              publish   T without activations, one bucket
//   own cards of the rollout   rollout   E in full, the staged version in host memory
//   own cards of the reference score     R
//   shared cards               train              T in full, what an idle E keeps
//                              offload_optimizer  T without activations, on device and host at once
//                              reshard, bind      T's weights stay, E's arrive; one bucket
//                              kv_alloc           E with its cache; what an idle T keeps (parked)
//                              rollout            E in full
//                              renew              E in full, the staged version in host memory, one
//                                                 bucket (where engines switch one by one)
//                              free_kv            E's weights
//                              onload_reference   R's weights on device and host (fused)
//                              score              R in full, T parked (fused)
//                              onload             T without activations, on device and host
// `separate` has groups of the first three kinds, `colocated` a shared group, `fused` one with the
// reference in it, `hybrid` own cards of the rollout and a shared group.
// Ledgers: role_memory.hpp. Range: theirs.
#pragma once

#include "actors/simulation/placement_mode.hpp"
#include "actors/simulation/role_memory.hpp"
#include "core/result.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

enum class ReferencePlace { None, Own, InTurn };

/// Who is where, as counts.
struct SimulatedPlacement {
  SimulatedRun run;
  PlacementMode mode = PlacementMode::Separate;
  std::int64_t rollout_cards = 1;  ///< In hybrid mode the fixed ones: the trainer's switch.
  std::int64_t engines = 1;        ///< On rollout_cards.
  std::int32_t concurrency = 0;    ///< Of an engine.
  ReferencePlace reference = ReferencePlace::None;
  std::int64_t references = 1;
  std::int64_t reference_cards = 0;  ///< Of all references.
  bool one_by_one = false;           ///< Engines that stay take new weights while they generate.
};

/// The settings of an engine on the rollout's own cards.
SimulationSettings own_engine(const SimulatedPlacement& placement);
/// The settings of an engine on shared cards. Requires: a mode that has them.
SimulationSettings switching_engine(const SimulatedPlacement& placement);
/// The settings of a reference. Requires: there is one.
SimulationSettings one_reference(const SimulatedPlacement& placement);

/// What each role holds per device of a group of cards in one phase.
struct PhaseLedger {
  struct Part {
    std::string_view role;
    actors::ActorMemory memory;
  };
  std::string_view group;
  std::string_view phase;
  std::vector<Part> parts;
  double device_capacity = 0, host_capacity = 0;  ///< Of the hardware that these cards are of.

  double device() const;
  double host() const;
  /// Every entry that is not zero, in GiB.
  std::string text() const;
};

/// Every phase of every group. Error: a layout that does not divide the model or its cards, or a KV
/// cache that cannot hold one longest response.
Result<std::vector<PhaseLedger>> memory_phases(const SimulatedPlacement& placement);

/// Bytes of a device's share of host memory that no phase needs; none for what does not fit.
std::optional<double> host_left(const SimulatedPlacement& placement);

/// "1.50" for 1.5 GiB.
std::string gib_text(double bytes);

}  // namespace temper::actors
