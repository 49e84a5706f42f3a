// The space of a training layout search: a list of values for each degree and switch. Values only;
// no threads.
#pragma once

#include "sim_hw/layout/layout.hpp"
#include "sim_hw/plan/train_plan.hpp"

#include <cstdint>
#include <vector>

namespace temper::sim_hw {

/// Activations that are dropped: those of `recompute` only, or also single tensors until the layout
/// fits.
enum class Activations { AsRecompute, Chosen };

/// Values to try; each list is ascending.
struct TrainSpace {
  std::vector<std::int64_t> tp, pp, vpp, ep, cp, dp, micro_batch;
  std::vector<std::int64_t> expert_tp;  ///< Empty: 1 and tp.
  std::vector<Zero> zero;
  std::vector<Recompute> recompute;
  std::vector<SequenceParallel> sequence_parallel;
  std::vector<TrainerState> state;
  std::vector<PipelineSchedule> schedule;
  std::vector<LayerBalance> layer_balance;
  std::vector<Activations> activations;
};
/// Every value that can run: divisors of the dimension that is split, powers of two for cp and
/// micro-batch. Excludes sharded gradients and weights (ZeRO 2, 3), which the cost model overrates.
/// Schedule and layer balance are those of the plain step; activations follow `recompute`.
TrainSpace full_space(const TrainProblem& problem, const TrainShape& shape);

}  // namespace temper::sim_hw
