// Time of one training step of a model over many devices: compute and waits of each stage, the
// pipeline around the stages, data parallelism and the optimizer. Cost of one layer, and exposure
// of its communication: layer_cost.hpp.
//
// Equations. t_i: time of one micro-batch on stage i (all its chunks, forward, backward, recompute
// and exposed communication); m micro-batches, p stages, v chunks:
//   step     = pipeline + data parallel + optimizer
//   pipeline = m max t_i + bubble,  bubble = (sum t_i - max t_i) / v       [(p - 1) t / v if equal]
// for 1F1B, and for interleaved 1F1B with v > 1. Where passes of two micro-batches overlap, a pass
// that overlaps no other takes t' (with all its expert communication), and w of the m are such:
//   adaptive  pipeline = (m - w) max t + w max t' + (sum t' - max t') / v, w = ((v - 1) p + 1) / v:
//     interleaved, where the last stage runs (v - 1) p + 1 chunks forward before its first backward
//   dualpipe  pipeline = (m - w) t + w t' + (p/2 - 1) (t + B' - 3 W), w = p + 1, t the mean of
//     stages i and p - 1 - i, which share a device; W: its weight gradients (bubble: 2412.19437,
//     table 2; w: the devices in the middle, in its published code)
// Both agree with their schedules run slot by slot (tests/sim_hw/parallel/schedules_test.cpp):
// adaptive exactly, dualpipe within 1.2 %.
//   data parallel: reduce-scatter of gradients and all-gather of weights overlap the last backward
//     and the next forward pass of a micro-batch: the excess, at least one layer's share. With an
//     adapter (TrainShape::adapter) those of its parameters; matrices that all devices of tensor
//     parallelism hold have gradients that are summed over these devices, exposed
// Constants: OperatorConstants and CollectiveConstants of the hardware; none of its own.
// Range: steady state, equal lengths, all devices alike except the busiest experts. Doubles are
// seconds. Pure functions; nothing allocates.
#pragma once

#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/network/collectives.hpp"
#include "sim_hw/operators/device.hpp"
#include "sim_hw/parallel/layer_cost.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace temper::sim_hw {

struct TrainTime {
  StageTime stage;        ///< For the slowest stage, all micro-batches.
  double all_stages = 0;  ///< One micro-batch, summed over stages.
  double bubble = 0;
  double data_parallel = 0;
  double optimizer = 0;
  double hidden = 0;  ///< Expert communication that overlaps other passes; not in total().

  double total() const { return stage.total() + bubble + data_parallel + optimizer; }
  /// The first kStageEntries entries belong to the slowest stage.
  static constexpr std::size_t kStageEntries = 14;
  std::array<std::pair<std::string_view, double>, kStageEntries + 3> entries() const;
};

/// Requires: check_layout() accepts the layout.
TrainTime train_iteration_time(const ModelSpec& model,
                               const Device& device,
                               const Fabric& fabric,
                               const Layout& layout,
                               const TrainShape& shape);

/// FLOP of a step that count for the MFU (sim_hw/model/flops.hpp), with whole sequences.
double model_flops(const ModelSpec& model, const TrainShape& shape);

}  // namespace temper::sim_hw
