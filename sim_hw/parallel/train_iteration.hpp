// Time of one training step of a model laid out over many devices: what each stage computes and
// waits for, the pipeline around it, and what data parallelism and the optimizer add.
//
// Equations. t_i: time of one micro-batch on stage i (all its chunks, forward, backward, recompute
// and exposed communication); m micro-batches, p stages, v chunks:
//   pipeline = m max t_i + bubble,  bubble = (sum t_i - max t_i) / v       [(p - 1) t / v if equal]
//   step     = pipeline + data parallel + optimizer
// that is for 1F1B, interleaved with v > 1. Where passes of two micro-batches overlap, a pass that
// has none beside it takes t', with all its expert communication, and there are w such of m:
//   adaptive  pipeline = (m - w) max t + w max t' + (sum t' - max t') / v, w = ((v - 1) p + 1) / v:
//     interleaved, where the last stage runs (v - 1) p + 1 chunks forward before its first backward
//   dualpipe  pipeline = (m - w) t + w t' + (p/2 - 1) (t + B' - 3 W), w = p + 1, t of the mean of
//     stages i and p - 1 - i, which one device has; W: its weight gradients (bubble: 2412.19437,
//     table 2; w: the devices in the middle, in its published code)
// Both agree with their schedules run slot by slot (tests/sim_hw/schedules_test.cpp): adaptive
// exactly, dualpipe within 1.2 %.
// A layer, with T = s b / cp tokens, t tensor-parallel devices:
//   compute  = its GEMMs at their shapes after the cut (gemm_seconds), attention, grouped experts,
//     and bytes of norms, dropout, residual, activation, rotary / bandwidth; with sequence
//     parallelism norms, dropout and residual are cut by t
//   gradient accumulation: read and write of the gradients for each micro-batch
//   unfused attention moves 8 bytes forward and 14 backward per score of a s^2 b / t, and with
//     dropout 5 more each way: see score_bytes() in layer_cost.cpp
//   recompute: full = the forward once more with its communication; selective = the attention core
// Exposed communication of a layer:
//   tensor   forward 2 all-reduces (with sequence parallelism an all-gather and a reduce-scatter
//     each), exposed; backward the same on the other side: reductions of input gradients run beside
//     the weight gradient GEMMs and only their excess shows; with sequence parallelism the gathers
//     of output gradients show, those of saved inputs run beside the input gradient GEMMs
//   expert   dispatch and combine, forward and backward, of T / t tokens each (busiest device):
//     flat or by node, whichever is less, or as the switch says; with overlap only what exceeds the
//     other direction's compute, to which a recomputation and its communication belong (backward).
//     Then the all-reduce of expert loads, 4 bytes per expert, where the balance loss asks for it
//   context  (cp - 1) exchanges of keys and values beside the attention of a block: the excess
//   pipeline 2 v transfers of 2 T h / t bytes per micro-batch, blocking, and an all-gather inside
//     the tensor-parallel group without sequence parallelism
//   data     reduce-scatter of gradients and all-gather of weights beside the last backward and the
//     next forward of a micro-batch: the excess, and at least one layer's share of each
// Other waits of a layer:
//   samples  (attention imbalance - 1) x its attention: expert parallelism couples the replicas
//   swap     activation_choice.hpp
//   host     stalls x (copy latency + launch); eager: between two stalls the excess of the kernels'
//     launches over device time. Kernels of a layer: as counted in eager PyTorch (steps.hpp)
// Constants: OperatorConstants and CollectiveConstants of the hardware; none of its own. Bytes of
// elementwise kernels are counts of tensors read and written by fused kernels of Megatron-LM.
// Range: steady state, equal lengths, every device alike but for the busiest experts.
// Doubles are seconds. Pure functions; nothing allocates.
#pragma once

#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/network/collectives.hpp"
#include "sim_hw/operators/device.hpp"
#include "sim_hw/parallel/layer_cost.hpp"
#include "sim_hw/parallel/layout.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace temper::sim_hw {

struct TrainTime {
  StageTime stage;        ///< Of the slowest stage, all micro-batches.
  double all_stages = 0;  ///< Sum over stages of one micro-batch.
  double bubble = 0;
  double data_parallel = 0;
  double optimizer = 0;
  double hidden = 0;  ///< Expert communication beside other passes: not in the total.

  double total() const { return stage.total() + bubble + data_parallel + optimizer; }
  /// The first kStageEntries are of the slowest stage.
  static constexpr std::size_t kStageEntries = 14;
  std::array<std::pair<std::string_view, double>, kStageEntries + 3> entries() const;
};

/// Requires: check_layout() accepts the layout.
TrainTime train_iteration_time(const ModelSpec& model,
                               const Device& device,
                               const Fabric& fabric,
                               const Layout& layout,
                               const TrainShape& shape);

/// FLOP of a step that count for the MFU (sim_hw/model/flops.hpp), of whole sequences.
double model_flops(const ModelSpec& model, const TrainShape& shape);

}  // namespace temper::sim_hw
