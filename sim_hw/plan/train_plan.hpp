// A priced plan to train a model on a cluster: a layout, a shape, the place of the optimizer
// states, and the resulting time and memory. train_search.hpp compares these plans.
//
//   step = train_iteration_time() + host transfer
// Host transfer applies if the optimizer states are in host memory: to the device and back over its
// link, one direction after the other with the update between them, as
// trainer/simulated/update_cost.hpp prices it.
// Constants: none of its own. Doubles are seconds and bytes. Pure functions.
#pragma once

#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/parallel/train_iteration.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace temper::sim_hw {

struct TrainScenario {
  Layout layout;
  TrainShape shape;
  TrainerState state = TrainerState::Active;  ///< Active or OptimizerOnHost.
};

/// A model on devices of a hardware, and their memory limits. Computed once.
struct TrainProblem {
  TrainProblem(const ModelSpec& trained, const HardwareSpec& hardware, std::int64_t cards);

  const ModelSpec& model;  ///< Borrowed.
  Device device;
  Fabric fabric;
  std::int64_t devices;
  double device_memory;  ///< Per device.
  double host_memory;    ///< A device's share of its node's memory.

  bool fits(const PlacedLedger& memory) const {
    return memory.device.total() <= device_memory && memory.host.total() <= host_memory;
  }
};

struct TrainPlan {
  TrainScenario scenario;
  TrainTime time;
  double host_transfer = 0;
  PlacedLedger memory;  ///< For the fullest device.

  double total() const { return time.total() + host_transfer; }
  double tokens_per_second() const;
  /// Summands of total(), by name.
  std::vector<std::pair<std::string_view, double>> entries() const;
};

/// Includes swapped activations in host memory. Requires: check_layout() accepts the layout.
PlacedLedger plan_memory(const TrainProblem& problem, const TrainScenario& scenario);
TrainPlan price(const TrainProblem& problem, const TrainScenario& scenario);
/// Counted FLOP over the peak of the devices that the plan uses.
double plan_mfu(const TrainProblem& problem, const TrainPlan& plan);

/// Whether both layouts split the model alike; replicas, shape and the place of states may differ.
bool same_cut(const Layout& a, const Layout& b);
/// Order of equally fast plans, so that a search is deterministic: fewer devices, then smaller
/// splits.
bool is_simpler(const TrainPlan& a, const TrainPlan& b);

}  // namespace temper::sim_hw
