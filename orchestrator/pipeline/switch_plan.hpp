// Predicted time and memory of a role switch on simulated hardware: the states of
// orchestrator/scheduler/sharing/role_switch.hpp, with the times of
// actors/simulation/weight_moves.hpp and the ledgers of actors/simulation/memory_phases.hpp. Also
// the cost of other orders of these states.
//
// Not predicted: waiting for the current step when engines are interrupted, and scoring itself.
// Other orders:
//   cache first    the KV cache is allocated before the weights arrive. It coexists with the
//                  trainer's weights during resharding, so less memory is left for it
//   weights first  the trainer's weights are offloaded with the optimizer, before resharding. They
//                  return for it over each device's link, which adds the time of that transfer
#pragma once

#include "actors/simulation/memory_phases.hpp"
#include "orchestrator/scheduler/state/facts.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

struct PredictedState {
  std::string_view state;  ///< Name as in metrics/turns.hpp.
  double seconds = 0;
  DeadlineKind deadline = DeadlineKind::Switch;  ///< That limits it.
};

struct SwitchPlan {
  std::vector<PredictedState> to_rollout, to_training;
};

struct OtherOrders {
  /// Largest kv_share that fits every phase, cache last and cache first; nullopt: not even 0.01
  /// fits.
  std::optional<double> kv_share_last, kv_share_first;
  /// Seconds that "weights first" adds.
  double weights_first = 0;
};

// Both require: check_memory() accepts the placement, and roles share cards.
SwitchPlan predict_switch(const actors::SimulatedPlacement& placement);
/// Evaluates some hundred ledgers.
OtherOrders predict_other_orders(const actors::SimulatedPlacement& placement);

}  // namespace temper::orchestrator
