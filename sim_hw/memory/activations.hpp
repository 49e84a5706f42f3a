// The tensors that a transformer layer saves from its forward pass for its backward pass: each with
// its width, its bytes and how the layout splits it. GPT, SwiGLU, grouped-query, latent attention
// and experts each have their own sums.
//
// Assumptions: 16-bit activations; masks of one byte; a matrix product saves its input, a norm its
// input, softmax its output; a fused SwiGLU saves gate and up but not silu(gate); fused attention
// saves one FP32 logsumexp per head instead of the seq x seq matrices.
// With an adapter (TrainShape::adapter), a product saves its input only if its layer has one, and
// then also the `rank` columns between A and B; what the backward pass of a norm, of attention, of
// an activation or of routing needs is saved as before. Where a tensor is recomputed from an input
// that is not saved, recomputing that input (one elementwise kernel) is not counted.
// Equation: bytes per token = sum of width * bytes / cut. For GPT with unfused attention this is h
// (10 + 24/t + 5 a s / (h t)), and h 34 / t with sequence parallelism and selective recompute
// (Korthikanti et al., arXiv 2205.05198, section 4), which the tests assert.
// Constants: none. Range: training of decoder-only models, micro-batches of equal length. Values
// only; nothing allocates.
#pragma once

#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace temper::sim_hw {

/// How a layout splits a saved tensor.
enum class TensorSplit {
  Sequence,  ///< Whole on every tensor-parallel device unless sequence parallelism splits it.
  Tensor,    ///< Split by tensor parallelism.
  Routed,    ///< Whole rows of the tokens routed to this device.
  Expert,    ///< As Routed, with rows split by the expert's tensor parallelism.
  Whole,     ///< Whole on every tensor-parallel device.
};

/// Whether selective recompute drops a tensor and recomputes it.
enum class TensorPart { Kept, AttentionCore };

/// The operator that recomputes a tensor from tensors that are kept or recomputed before it.
enum class RecomputeOperator {
  Never,        ///< Chains of recomputation start here, or recomputing needs a collective.
  Elementwise,  ///< One kernel.
  Projection,   ///< A matrix product.
  Attention,    ///< The attention of the layer.
  Experts,      ///< A grouped matrix product.
};

struct SavedTensor {
  std::string_view name;
  double width = 0;  ///< Elements per token; for routed tensors, per token before routing.
  double bytes = 2;  ///< Per element.
  TensorSplit cut = TensorSplit::Tensor;
  TensorPart part = TensorPart::Kept;
  RecomputeOperator recompute_operator = RecomputeOperator::Never;
  double inner = 0;  ///< Inner size of the matrix product, or the number of tensors that an
                     ///< elementwise kernel reads.
};

class SavedTensors {
 public:
  void add(const SavedTensor& tensor) { tensors_[count_++] = tensor; }
  std::span<const SavedTensor> all() const { return {tensors_.data(), count_}; }
  /// Bytes that one device saves per token of its micro-batch before any split, without the tensors
  /// in `dropped`.
  double bytes_per_token(const Layout& layout,
                         const TrainShape& shape,
                         Recompute recompute,
                         std::uint32_t dropped = 0) const;

 private:
  std::array<SavedTensor, 30> tensors_{};
  std::size_t count_ = 0;
};

/// Bytes of `tensor` on one device, per token before any split.
double tensor_bytes_per_token(const SavedTensor& tensor,
                              const Layout& layout,
                              const TrainShape& shape);

/// Whether silu(gate) is saved too: Eager runs module by module, Fused has gate and up in one
/// kernel.
enum class Gating { Fused, Eager };

/// The tensors that one layer saves for its backward pass.
SavedTensors saved_tensors(const ModelSpec& model,
                           const TrainShape& shape,
                           LayerKind kind,
                           Gating gating = Gating::Fused);

}  // namespace temper::sim_hw
