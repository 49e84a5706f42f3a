// The fastest ways to train a model on a cluster, among all that a space holds and memory allows.
//
// The search is exact: what it leaves out cannot be among the answers. For each cut of a layer
// (tp, sequence parallelism, cp, ep, expert tp) and micro-batch, recompute it computes one layer of
// each kind, once; with them, before anything else is looked at, a node (those, pp and dp) has
//   time   >= m t + (p - 1) t / v,  t = sum of the layers / p       (the mean stage, at best equal)
//             or m t with DualPipe, whose passes meet from both ends
//   memory >= weights, gradients and optimizer of the mean stage with the most that ZeRO and the
//             host may take, and the reserve
// Nodes that exceed the memory, or are slower than what is wanted, are left out with all that is in
// them; of the others every vpp, ZeRO stage and place of the optimizer has its ledger computed, and
// only what fits is timed.
// Wanted are the `count` fastest that cut the model differently (same_cut()), and those of least
// memory for their time, down to `front_slowdown` times the fastest.
// Tensors whose fate is chosen one by one (activation_choice.hpp) cost a millisecond a layout, so
// they come last: layouts that keep everything and do not fit, fastest first, as long as they would
// be among the best if dropping tensors cost nothing.
// Layouts need not use every device: what is best on fewer remains available on more, so that more
// devices are never worse.
#pragma once

#include "sim_hw/plan/train_plan.hpp"
#include "sim_hw/plan/train_space.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace temper::sim_hw {

struct SearchCounts {
  std::int64_t nodes = 0;      ///< Looked at.
  std::int64_t unfit = 0;      ///< Nodes whose states alone exceed the memory.
  std::int64_t slower = 0;     ///< Nodes whose bound is slower than what is wanted.
  std::int64_t scenarios = 0;  ///< Ledgers computed.
  std::int64_t fitting = 0;    ///< Of them, in memory.
  std::int64_t timed = 0;      ///< Of them, not worse by their bound than what was known.
  std::int64_t chosen = 0;     ///< Layouts whose tensors were gone through one by one.
};

struct TrainSearch {
  std::vector<TrainPlan> best;       ///< Fastest first.
  std::vector<TrainPlan> front;      ///< Less memory than any faster one; least memory first.
  std::optional<TrainPlan> nearest;  ///< If none fits: that of least memory on its device.
  SearchCounts counts;
};

struct SearchWishes {
  std::size_t count = 3;
  double front_slowdown = 2;
};

/// `shape` gives what the space does not.
TrainSearch search_train(const TrainProblem& problem,
                         const TrainSpace& space,
                         const TrainShape& shape,
                         const SearchWishes& wishes);

}  // namespace temper::sim_hw
