// What a role switch is predicted to take and to hold on simulated hardware, before it runs: the
// states of orchestrator/scheduler/sharing/role_switch.hpp with the seconds of
// actors/simulation/weight_moves.hpp and the ledgers of actors/simulation/memory_phases.hpp; and
// what other orders of the same states would need.
//
// Not predicted: waiting for the step under way when the engines are interrupted, scoring itself.
// Other orders.
//   cache first    the KV cache is allocated before weights arrive: it lies beside the trainer's
//                  weights while they are resharded, so a smaller share of the memory is left for
//                  it
//   weights first  the trainer's weights leave with the optimizer, before they are resharded: they
//                  come back for that over each device's link, the time of which is added
#pragma once

#include "actors/simulation/memory_phases.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

struct PredictedState {
  std::string_view state;  ///< As metrics/turns.hpp names it.
  double seconds = 0;
};

struct SwitchPlan {
  std::vector<PredictedState> to_rollout, to_training;
};

struct OtherOrders {
  /// The largest kv_share that fits every phase, cache last and cache first; none: not even 0.01.
  std::optional<double> kv_share_last, kv_share_first;
  /// Seconds that weights first would add.
  double weights_first = 0;
};

// Both require: a placement that check_memory() accepts; cards that are shared.
SwitchPlan predict_switch(const actors::SimulatedPlacement& placement);
/// Tries some hundred ledgers.
OtherOrders predict_other_orders(const actors::SimulatedPlacement& placement);

}  // namespace temper::orchestrator
