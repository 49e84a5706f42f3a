// Placement of experts under drifting loads: load prediction, migration and redundant experts.
//
// A trace holds, step by step, the share of routed copies of every expert of a layer. In generated
// traces the logarithm of each expert's popularity wanders (a stationary first-order process of the
// given spread, so loads are lognormal and keep their skew):
//   x(t + 1) = r x(t) + sqrt(1 - r^2) spread z,  load = exp(x) / sum exp(x),  r = 1 - drift
// With an exponent s, popularity only ranks the experts: the load of rank i is i^-s / sum j^-s, so
// every step has the same loads, and they move from expert to expert (Zipf).
// Redundant experts are slots besides one for each expert. Slots of one expert share its load
// equally. The next slot goes to the expert with the most load per slot, as EPLB of DeepSeek-AI
// replicates; then slots are placed as experts are.
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

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace temper::sim_hw {

using ExpertLoads = std::vector<double>;  ///< Sum to 1.

struct LoadTraceShape {
  std::int64_t experts = 0;
  std::int64_t steps = 0;
  double spread = 0;                 ///< Standard deviation of the log of popularity.
  double drift = 0.05;               ///< Share of it that a step renews.
  std::optional<double> exponent{};  ///< Zipf; then `spread` is not used.
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
  std::vector<double> of_rank_;  ///< Zipf: load of each rank. Empty: lognormal.
  bool first_ = true;
};
std::vector<ExpertLoads> generate_loads(const LoadTraceShape& shape, const Random& random);

/// The devices of an expert group. Requires: nodes divides devices, which divides the experts and
/// redundant experts together.
struct ExpertGroup {
  std::int64_t devices = 1;
  std::int64_t nodes = 1;
  std::int64_t redundant = 0;
};
using ExpertPlacement = std::vector<std::int64_t>;  ///< Device of each expert, or of each slot.
using ExpertSlots = std::vector<std::size_t>;       ///< Expert of each slot.

/// Each expert once, in order; then the redundant ones.
ExpertSlots replicate(const ExpertLoads& predicted, std::int64_t redundant);
ExpertLoads loads_of_slots(const ExpertLoads& loads, const ExpertSlots& slots);

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
  double dropped = 0;            ///< Share of the copies above the capacity of their expert; the
                                 ///< imbalances count processed copies over the mean of all.
  double dropped_most = 0;       ///< The same, of the layer that drops most.

  /// Adds one of `count` outcomes whose mean this becomes; migrations are summed.
  MigrationOutcome& add(const MigrationOutcome& one, double count);
};
/// The start of a mean.
inline constexpr MigrationOutcome kNoOutcome{0, 0, 0, 0, 0, 0, 0};

/// A layer whose experts migrate from step to step.
class ExpertMigration {
 public:
  /// Begins with the original order, and with redundant copies of the first experts.
  ExpertMigration(std::int64_t experts, const ExpertGroup& group);
  /// The placement of a step is decided before it, from earlier steps.
  MigrationOutcome step(const ExpertLoads& loads, const MigrationRule& rule);

  const ExpertGroup& group() const { return group_; }
  const ExpertPlacement& original() const { return original_.devices; }
  /// Of the last step.
  const ExpertPlacement& placement() const { return placed_.devices; }

 private:
  struct Placed {
    ExpertSlots slots;
    ExpertPlacement devices;
  };
  double imbalance(const ExpertLoads& loads, const Placed& placed) const;
  /// Largest number of experts that one device receives.
  std::int64_t most_received(const Placed& next) const;

  ExpertGroup group_;
  Placed original_, placed_;
  ExpertLoads predicted_;  ///< Empty before the first step.
};
/// The means of a trace. Requires: at least one step.
MigrationOutcome migrate(const std::vector<ExpertLoads>& trace,
                         const ExpertGroup& group,
                         const MigrationRule& rule);

}  // namespace temper::sim_hw
