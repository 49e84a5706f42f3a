// Finds the fastest ways to train a model on a cluster, among all in a space that fit the memory.
//
// The search is exact: nothing that it skips can be among the answers. For each split of a layer
// (tp, sequence parallelism, cp, ep, expert tp), micro-batch and recompute it prices one layer of
// each kind once. From these, before anything else, a node (the split with pp and dp) has the
// bounds
//   time   >= m t + (p - 1) t / v,  t = sum of the layers / p       (the mean stage)
//             or m t with DualPipe, whose passes meet from both ends
//   memory >= weights, gradients and optimizer of the mean stage with the most that ZeRO and the
//             host may take, and the reserve
// Nodes that exceed the memory or are too slow are skipped with everything below them. For the
// others the ledger is computed for every vpp, ZeRO stage and place of the optimizer, and only
// scenarios that fit are timed.
// Answers: the `count` fastest plans with different splits (same_cut()), and the plans of least
// memory for their time, down to `front_slowdown` times the fastest.
// Choosing tensors one by one (activation_choice.hpp) costs a millisecond per layout, so it comes
// last: for layouts that keep everything and do not fit, fastest first, as long as they would be
// among the best if dropping tensors were free.
// Layouts need not use every device. So the best layout for fewer devices remains available on
// more, and more devices are never worse.
#pragma once

#include "sim_hw/plan/train_plan.hpp"
#include "sim_hw/plan/train_space.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace temper::sim_hw {

struct SearchCounts {
  std::int64_t nodes = 0;      ///< Visited.
  std::int64_t unfit = 0;      ///< Nodes whose states alone exceed the memory.
  std::int64_t slower = 0;     ///< Nodes whose time bound is too slow.
  std::int64_t scenarios = 0;  ///< Ledgers computed.
  std::int64_t fitting = 0;    ///< Scenarios that fit the memory.
  std::int64_t timed = 0;      ///< Fitting scenarios whose bound was competitive.
  std::int64_t chosen = 0;     ///< Layouts whose tensors were chosen one by one.
};

struct TrainSearch {
  std::vector<TrainPlan> best;  ///< Fastest first.
  std::vector<TrainPlan>
      front;  ///< Pareto front: less memory than any faster plan; least memory first.
  std::optional<TrainPlan> nearest;  ///< If none fits: the one with the least device memory.
  SearchCounts counts;
};

struct TrainSearchOptions {
  std::size_t count = 3;
  double front_slowdown = 2;
};

/// `shape` gives the values that the space does not.
TrainSearch search_train(const TrainProblem& problem,
                         const TrainSpace& space,
                         const TrainShape& shape,
                         const TrainSearchOptions& wishes);

}  // namespace temper::sim_hw
