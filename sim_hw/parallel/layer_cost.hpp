// What one layer costs one device per micro-batch under a layout: compute and exposed
// communication. train_iteration.hpp puts the layers together.
//
// Equations. T = s b / cp tokens per micro-batch and device, t tensor-parallel devices, h hidden:
//   compute  = its GEMMs at their shapes after the cut (gemm_seconds), attention, grouped experts,
//     and bytes of norms, dropout, residual, activation, rotary / bandwidth; with sequence
//     parallelism norms, dropout and residual are cut by t
//   gradient accumulation: read and write of the gradients for each micro-batch
//   unfused attention moves 8 bytes forward and 14 backward per score of a s^2 b / t, and with
//     dropout 5 more each way: see score_bytes() in layer_cost.cpp
//   recompute: full = the forward once more with its communication; selective = the attention core
// Exposed communication:
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
// Other waits:
//   samples  (attention imbalance - 1) x its attention: expert parallelism couples the replicas
//   swap     activation_choice.hpp
//   host     stalls x (copy latency + launch); eager: between two stalls the excess of the kernels'
//     launches over device time. Kernels of a layer: as counted in eager PyTorch (steps.hpp)
// Bytes of elementwise kernels are counts of tensors read and written by fused kernels of
// Megatron-LM. Doubles are seconds; nothing allocates.
#pragma once

#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/network/collectives.hpp"
#include "sim_hw/operators/operators.hpp"

namespace temper::sim_hw {

/// With the kernels that a step is run with.
inline Device device_under(const Mechanisms& mechanisms, const Device& device) {
  return mechanisms.operators == OperatorKernels::Plain ? plain_kernels(device) : device;
}

/// Borrowed for one estimate.
struct StepInputs {
  const ModelSpec& model;
  const Device& device;
  const Fabric& fabric;
  const Layout& layout;
  const TrainShape& shape;

  double tp() const { return static_cast<double>(layout.tp); }
  /// Of a micro-batch on one context-parallel device.
  double tokens() const {
    return static_cast<double>(shape.seq * shape.micro_batch) / static_cast<double>(layout.cp);
  }
  double hidden() const { return static_cast<double>(model.hidden); }
  /// What cuts the parts between tensor-parallel regions.
  double sequence_cut() const {
    return layout.sequence_parallel == SequenceParallel::On ? tp() : 1;
  }
  /// 16-bit activations of one micro-batch between layers, whole.
  double plane_bytes() const { return 2 * tokens() * hidden(); }
};

/// The attention that one device computes.
AttentionShape attention_shape(const StepInputs& in);

/// What a layer exchanges in one pass, as the collectives take it.
struct TensorExchange {
  Group group;
  double regions = 0;  ///< Attention, and the MLP if it is cut as well.
  double bytes = 0;    ///< Of a rank's part with sequence parallelism, else of the whole.
};
TensorExchange tensor_exchange(const StepInputs& in, double regions);
/// Intermediate size of the MLP that tensor parallelism cuts: the dense one, or the shared experts.
double cut_ffn(const ModelSpec& model, LayerKind kind);
/// Regions of a layer that tensor parallelism cuts.
double tensor_regions(const ModelSpec& model, LayerKind kind);
struct ExpertExchange {
  Group group;
  MoeTraffic traffic;
  AllToAll how = AllToAll::Flat;
  double seconds = 0;       ///< Dispatch and combine.
  Group tensor;             ///< Of one expert.
  double tensor_bytes = 0;  ///< Gathered before and scattered after it, of a rank.
};
/// Requires: in.model.moe.
ExpertExchange expert_exchange(const StepInputs& in);
/// Devices over which the load-balance loss sums the load of each expert, 4 bytes of it, and those
/// bytes; one device where it does not.
struct LoadSum {
  Group group;
  double bytes = 0;
};
LoadSum load_sum(const StepInputs& in);
/// Keys and values that a device passes to its neighbour in the ring.
double context_block_bytes(const StepInputs& in);

/// Parts of a micro-batch on one stage, or of a whole step; they sum to its time.
struct StageTime {
  double matmul = 0;  ///< Dense GEMMs of the layers, forward and backward.
  double attention = 0;
  double experts = 0;       ///< Router and routed experts.
  double elementwise = 0;   ///< Norms, dropout, residual, activation, rotary.
  double accumulation = 0;  ///< Of gradients.
  double head = 0;          ///< Embedding, head and loss.
  double recompute = 0;     ///< Forward compute done again.
  double tensor_parallel = 0;
  double expert_parallel = 0;
  double context_parallel = 0;
  double pipeline_transfer = 0;
  double data_wait = 0;  ///< For the replica with the longest sequences.
  double swap = 0;       ///< Of activations, what shows beside compute.
  double host = 0;       ///< For launches and for sizes that the host asks for.

  double total() const {
    return matmul + attention + experts + elementwise + accumulation + head + recompute +
           tensor_parallel + expert_parallel + context_parallel + pipeline_transfer + data_wait +
           swap + host;
  }
  StageTime& add(const StageTime& other, double times);
};

struct LayerCost {
  StageTime time;      ///< Forward, backward and recompute.
  double forward = 0;  ///< Of time, without recompute.
  /// Expert communication that the schedule hides beside the pass of another micro-batch, and that
  /// shows when there is none.
  double hidden = 0;
  double hidden_forward = 0;   ///< Of it.
  double weight_gradient = 0;  ///< Of time: what a schedule may put off.

  LayerCost& add(const LayerCost& other, double times);
};

/// Without gradient accumulation, which depends on the stage's parameters. Requires: the model has
/// layers of this kind.
LayerCost layer_cost(const StepInputs& in, LayerKind kind);

}  // namespace temper::sim_hw
