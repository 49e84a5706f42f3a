// What a search of layouts for training tries: a list of values for each degree and switch. Values
// only; no threads.
#pragma once

#include "sim_hw/layout/layout.hpp"
#include "sim_hw/plan/train_plan.hpp"

#include <cstdint>
#include <vector>

namespace temper::sim_hw {

/// What is dropped of activations: what `recompute` says, or also what has to go, tensor by tensor.
enum class Activations { AsRecompute, Chosen };

/// Values to try. Each list is ascending.
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
/// Every value that can run: divisors of what they cut, with powers of two for cp and micro-batch.
/// Neither gradients nor weights are sharded (ZeRO 2, 3), which the cost model favours; schedule
/// and layer balance are those of the plain step, and activations are as `recompute` says.
TrainSpace full_space(const TrainProblem& problem, const TrainShape& shape);

}  // namespace temper::sim_hw
