// Placement of experts under drifting loads: load prediction and migration.
//
// A trace holds, step by step, the share of routed copies of every expert of a layer. In generated
// traces the logarithm of each expert's popularity wanders (a stationary first-order process of the
// given spread, so loads are lognormal and keep their skew):
//   x(t + 1) = r x(t) + sqrt(1 - r^2) spread z,  load = exp(x) / sum exp(x),  r = 1 - drift
// Prediction: the exponential average of past loads, with weight `memory` on the past.
// Placement, greedy on two levels: experts in descending predicted load, each to the node with the
// least load that has room, then to the device with the least load that has room inside it.
// Migration: with s seconds per step for the layer's experts and their exchange at balance, a new
// placement is adopted if (imbalance now - imbalance then, both predicted) s horizon exceeds the
// time in which the device that receives most gets its experts through its port.
// Imbalance of a step: load of the busiest device over the mean; it is
// TrainShape::expert_imbalance. Assumed: all layers are alike and independent; the micro-batches of
// a step have equal loads. Constants: none. Threads: pure functions.
#pragma once

#include "core/random.hpp"

#include <cstdint>
#include <vector>

namespace temper::sim_hw {

using ExpertLoads = std::vector<double>;  ///< Sum to 1.

struct LoadTraceShape {
  std::int64_t experts = 0;
  std::int64_t steps = 0;
  double spread = 0;    ///< Standard deviation of the log of popularity.
  double drift = 0.05;  ///< Share of it that a step renews.
};
/// Draws such a trace step by step; `shape.steps` does not limit it.
class LoadWalk {
 public:
  LoadWalk(const LoadTraceShape& shape, const Random& random);
  /// The loads of the next step.
  ExpertLoads next();

 private:
  double keep_, renew_;
  Random random_;
  std::vector<double> logs_;
  bool first_ = true;
};
std::vector<ExpertLoads> generate_loads(const LoadTraceShape& shape, const Random& random);

/// The devices of an expert group. Requires: nodes divides devices, which divides the experts.
struct ExpertGroup {
  std::int64_t devices = 1;
  std::int64_t nodes = 1;
};
using ExpertPlacement = std::vector<std::int64_t>;  ///< Device of each expert.

/// Experts in their original order, the same number on each device.
ExpertPlacement original_placement(std::int64_t experts, const ExpertGroup& group);
ExpertPlacement place_greedily(const ExpertLoads& predicted, const ExpertGroup& group);
/// Load of the busiest device over the mean.
double imbalance_of(const ExpertLoads& loads,
                    const ExpertPlacement& placement,
                    const ExpertGroup& group);

struct MigrationRule {
  double memory = 0.7;  ///< Weight of the past in the prediction.
  double balanced_seconds =
      0;  ///< Seconds of a layer's experts and their exchange in a step, at balance.
  double expert_seconds =
      0;                ///< Seconds to receive one expert with the layers of all micro-batches.
  double horizon = 10;  ///< Steps that a placement is expected to last.
};
/// One step, or the mean of several.
struct MigrationOutcome {
  double without_migration = 1;  ///< Imbalance with experts in their original order.
  double imbalance = 1;          ///< Imbalance with migration.
  double prediction_error = 0;   ///< Share of the copies that a different expert gets; 0 in the
                                 ///< first step.
  std::int64_t migrations = 0;   ///< Of all steps.
  double seconds = 0;            ///< Migration time per step.
};

/// A layer whose experts migrate from step to step.
class ExpertMigration {
 public:
  /// Begins with the original order.
  ExpertMigration(std::int64_t experts, const ExpertGroup& group);
  /// The placement of a step is decided before it, from earlier steps.
  MigrationOutcome step(const ExpertLoads& loads, const MigrationRule& rule);

  const ExpertGroup& group() const { return group_; }
  const ExpertPlacement& original() const { return original_; }
  /// Of the last step.
  const ExpertPlacement& placement() const { return placement_; }

 private:
  ExpertGroup group_;
  ExpertPlacement original_, placement_;
  ExpertLoads predicted_;  ///< Empty before the first step.
};
/// The means of a trace. Requires: at least one step.
MigrationOutcome migrate(const std::vector<ExpertLoads>& trace,
                         const ExpertGroup& group,
                         const MigrationRule& rule);

}  // namespace temper::sim_hw
