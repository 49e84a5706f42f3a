// What one layer costs one device per micro-batch under a layout: compute and exposed
// communication. Equations and assumptions: sim_hw/parallel/train_iteration.hpp. Doubles are
// seconds; nothing allocates.
#pragma once

#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/network/collectives.hpp"
#include "sim_hw/operators/operators.hpp"
#include "sim_hw/parallel/layout.hpp"

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

/// Of one device.
AttentionShape attention_shape(const StepInputs& in);

/// What a layer exchanges in one pass, as the collectives take it.
struct TensorExchange {
  Group group;
  double regions = 0;  ///< Attention, and the MLP if it is cut as well.
  double bytes = 0;    ///< Of a rank's part with sequence parallelism, else of the whole.
};
TensorExchange tensor_exchange(const StepInputs& in, double regions);
/// Intermediate size of the MLP that tensor parallelism cuts: the dense one, or the shared experts.
double cut_ffn(const ModelSpec& model, bool experts);
/// Regions of a layer that tensor parallelism cuts.
double tensor_regions(const ModelSpec& model, bool experts);
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

/// Without gradient accumulation, which depends on the stage's parameters.
LayerCost dense_layer_cost(const StepInputs& in);
/// Requires: in.model.moe.
LayerCost expert_layer_cost(const StepInputs& in);

}  // namespace temper::sim_hw
