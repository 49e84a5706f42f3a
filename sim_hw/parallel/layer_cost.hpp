// Cost of one layer per micro-batch on one device under a layout: compute and exposed
// communication. train_iteration.hpp combines the layers.
//
// Equations. T = s b / cp tokens per micro-batch and device, t tensor-parallel devices, h hidden:
//   compute  = its GEMMs at their split shapes (gemm_seconds), attention, grouped experts, and
//     bytes of norms, dropout, residual, activation, rotary / bandwidth; with sequence
//     parallelism norms, dropout and residual are split by t
//     with an adapter (TrainShape::adapter): its products beside them (adapter_products.hpp), and
//     no weight gradients of frozen weights; input gradients of every layer, also of the lowest one
//   gradient accumulation: read and write of the gradients for each micro-batch
//   unfused attention moves 8 bytes forward and 14 backward per score of a s^2 b / t, and with
//     dropout 5 more in each direction: see score_bytes() in layer_cost.cpp
//   recompute: full = the forward once more with its communication; selective = the attention core
// Exposed communication:
//   tensor   forward: 2 all-reduces (with sequence parallelism an all-gather and a reduce-scatter
//     each), exposed. Backward: the same on the other side; reductions of input gradients overlap
//     the weight gradient GEMMs and only their excess is exposed. With sequence parallelism the
//     gathers of output gradients are exposed; those of saved inputs overlap the input gradient
//     GEMMs.
//   expert   dispatch and combine, forward and backward, of T / t tokens each (busiest device):
//     flat or by node, whichever is less, or as the switch says. With overlap only the excess over
//     the other direction's compute, which includes recomputation with its communication.
//     Then the all-reduce of expert loads, 4 bytes per expert, if the balance loss needs it.
//   context  (cp - 1) exchanges of keys and values that overlap a block's attention: the excess
//   pipeline 2 v transfers of 2 T h / t bytes per micro-batch, blocking, and an all-gather inside
//     the tensor-parallel group without sequence parallelism
// Other waits:
//   samples  (attention imbalance - 1) x its attention: expert parallelism couples the replicas
//   swap     activation_choice.hpp
//   host     host_dispatch.hpp
// Bytes of elementwise kernels count the tensors that fused Megatron-LM kernels read and write.
// Doubles are seconds; nothing allocates.
#pragma once

#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/network/collectives.hpp"
#include "sim_hw/operators/operators.hpp"

namespace temper::sim_hw {

/// The device with the kernels that the step runs.
inline Device device_under(const Mechanisms& mechanisms, const Device& device) {
  return mechanisms.operators == OperatorKernels::Plain ? plain_kernels(device) : device;
}

/// Borrows everything; valid for one estimate.
struct StepInputs {
  const ModelSpec& model;
  const Device& device;
  const Fabric& fabric;
  const Layout& layout;
  const TrainShape& shape;

  double tp() const { return static_cast<double>(layout.tp); }
  /// Tokens of a micro-batch on one context-parallel device.
  double tokens() const {
    return static_cast<double>(shape.seq * shape.micro_batch) / static_cast<double>(layout.cp);
  }
  double hidden() const { return static_cast<double>(model.hidden); }
  /// Split of the parts between tensor-parallel regions.
  double sequence_cut() const {
    return layout.sequence_parallel == SequenceParallel::On ? tp() : 1;
  }
  /// Bytes of the 16-bit activations of one micro-batch between layers, unsplit.
  double plane_bytes() const { return 2 * tokens() * hidden(); }
};

/// The attention that one device computes.
AttentionShape attention_shape(const StepInputs& in);

/// Tensor-parallel exchange of a layer in one pass, as input of the collectives.
struct TensorExchange {
  Group group;
  double regions = 0;  ///< Attention, and the MLP if it is split too.
  double bytes = 0;    ///< Per rank with sequence parallelism; otherwise the whole tensor.
};
TensorExchange tensor_exchange(const StepInputs& in, double regions);
/// Intermediate size of the MLP that tensor parallelism splits: the dense one, or the shared
/// experts.
double cut_ffn(const ModelSpec& model, LayerKind kind);
/// Number of regions of a layer that tensor parallelism splits.
double tensor_regions(const ModelSpec& model, LayerKind kind);
struct ExpertExchange {
  Group group;
  MoeTraffic traffic;
  AllToAll how = AllToAll::Flat;
  double seconds = 0;       ///< Dispatch and combine.
  Group tensor;             ///< Tensor parallelism of one expert.
  double tensor_bytes = 0;  ///< Gathered before and scattered after it, per rank.
};
/// Requires: in.model.moe.
ExpertExchange expert_exchange(const StepInputs& in);
/// The devices over which the load-balance loss sums the load of each expert, at 4 bytes, and those
/// bytes; one device if there is no exchange.
struct LoadSum {
  Group group;
  double bytes = 0;
};
LoadSum load_sum(const StepInputs& in);
/// Keys and values that a device sends to its ring neighbor.
double context_block_bytes(const StepInputs& in);

/// Time by part, of a micro-batch on one stage or of a whole step; the parts sum to the total.
struct StageTime {
  double matmul = 0;  ///< Dense GEMMs of the layers, forward and backward.
  double attention = 0;
  double experts = 0;       ///< Router and routed experts.
  double elementwise = 0;   ///< Norms, dropout, residual, activation, rotary.
  double accumulation = 0;  ///< Gradient accumulation.
  double head = 0;          ///< Embedding, head and loss.
  double recompute = 0;     ///< Forward compute repeated in the backward pass.
  double tensor_parallel = 0;
  double expert_parallel = 0;
  double context_parallel = 0;
  double pipeline_transfer = 0;
  double data_wait = 0;  ///< Wait for the replica with the longest sequences.
  double swap = 0;       ///< Exposed part of activation swap.
  double host = 0;       ///< Launches, and waits for sizes that the host fetches.

  double total() const {
    return matmul + attention + experts + elementwise + accumulation + head + recompute +
           tensor_parallel + expert_parallel + context_parallel + pipeline_transfer + data_wait +
           swap + host;
  }
  StageTime& add(const StageTime& other, double times);
};

struct LayerCost {
  StageTime time;      ///< Forward, backward and recompute.
  double forward = 0;  ///< Part of `time`, without recompute.
  /// Expert communication that the schedule hides behind the pass of another micro-batch; exposed
  /// if there is none.
  double hidden = 0;
  double hidden_forward = 0;   ///< Forward part of `hidden`.
  double weight_gradient = 0;  ///< Part of `time`; a schedule may defer it.

  LayerCost& add(const LayerCost& other, double times);
};

/// Excludes gradient accumulation, which depends on the stage's parameters. Requires: the model has
/// layers of this kind.
LayerCost layer_cost(const StepInputs& in, LayerKind kind);

}  // namespace temper::sim_hw
