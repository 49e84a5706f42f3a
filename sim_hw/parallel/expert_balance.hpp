// Which device holds which expert while their loads drift: load prediction and migration.
//
// A trace has the share of routed copies of every expert of a layer, step by step; generated ones
// let the logarithm of each expert's popularity wander (a stationary first-order process of the
// given spread, so that loads are lognormal and keep their skew):
//   x(t + 1) = r x(t) + sqrt(1 - r^2) spread z,  load = exp(x) / sum exp(x),  r = 1 - drift
// Cost: the exponential average of the loads seen, weight `memory` on the past.
// Placement, greedy on two levels: experts by falling predicted load, each to the node of least
// load that has room, then to the device of least load that has room inside it.
// Migration: with s seconds per step of the layer's experts and their exchange at balance, a new
// placement is taken if (imbalance now - imbalance then, both predicted) s horizon exceeds the time
// in which the device that receives most gets its experts through its port.
// Imbalance of a step: load of the busiest device over the mean; it is
// TrainShape::expert_imbalance. Assumed: all layers alike and independent; loads of a step's
// micro-batches alike. Constants: none. Threads: pure functions.
#pragma once

#include "core/random.hpp"

#include <cstdint>
#include <vector>

namespace temper::sim_hw {

using ExpertLoads = std::vector<double>;  ///< Sum to 1.

struct LoadTraceShape {
  std::int64_t experts = 0;
  std::int64_t steps = 0;
  double spread = 0;    ///< Standard deviation of the logarithm of popularity.
  double drift = 0.05;  ///< Of it, what a step renews.
};
std::vector<ExpertLoads> generate_loads(const LoadTraceShape& shape, Random& random);

/// Devices of an expert group. Requires: nodes divides devices, which divides the experts.
struct ExpertGroup {
  std::int64_t devices = 1;
  std::int64_t nodes = 1;
};
using ExpertPlacement = std::vector<std::int64_t>;  ///< Device of each expert.

/// Experts in their order, as many on each device.
ExpertPlacement in_order(std::int64_t experts, const ExpertGroup& group);
ExpertPlacement place_greedily(const ExpertLoads& predicted, const ExpertGroup& group);
/// Load of the busiest device over the mean.
double imbalance_of(const ExpertLoads& loads,
                    const ExpertPlacement& placement,
                    const ExpertGroup& group);

struct MigrationRule {
  double memory = 0.7;          ///< Weight of the past in the prediction.
  double balanced_seconds = 0;  ///< Of a layer's experts and their exchange in a step, at balance.
  double expert_seconds = 0;    ///< To receive one expert, of every micro-batch's layer.
  double horizon = 10;          ///< Steps that a placement is expected to last.
};
struct MigrationOutcome {
  double in_order = 1;   ///< Mean imbalance without migration.
  double imbalance = 1;  ///< With it.
  std::int64_t migrations = 0;
  double seconds = 0;  ///< Of migrations, per step.
};
/// A step's placement is decided before it, from the steps before. Requires: a step.
MigrationOutcome migrate(const std::vector<ExpertLoads>& trace,
                         const ExpertGroup& group,
                         const MigrationRule& rule);

}  // namespace temper::sim_hw
