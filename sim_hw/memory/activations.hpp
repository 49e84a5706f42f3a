// What a transformer layer keeps from its forward for its backward: a list of tensors, each with
// its width, its bytes and how the layout cuts it, so that GPT, SwiGLU, grouped-query, latent
// attention and experts all have their own sums.
//
// Assumptions: 16-bit activations; masks of one byte; a matrix product keeps its input, a norm its
// input, softmax its output; a fused SwiGLU keeps gate and up but not silu(gate); fused attention
// keeps one FP32 logsumexp per head instead of the seq x seq matrices.
// Equation: bytes per token = sum of width * bytes / cut. For GPT with unfused attention this is
// h (10 + 24/t + 5 a s / (h t)), and h 34 / t with sequence parallelism and selective recompute
// (Korthikanti et al., arXiv 2205.05198, section 4), which the tests assert.
// Constants: none. Range: training of decoder-only models, micro-batches of equal length.
// Values only; nothing allocates.
#pragma once

#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace temper::sim_hw {

/// How a layout shares a saved tensor out.
enum class Cut {
  Sequence,  ///< Whole on every tensor-parallel device, unless sequence parallelism cuts it.
  Tensor,    ///< Cut by tensor parallelism.
  Routed,    ///< Rows of the tokens routed to this device, whole rows.
  Expert,    ///< The same, with rows cut by the expert's tensor parallelism.
};

/// Whether selective recompute drops a tensor and computes it again.
enum class Part { Kept, AttentionCore };

/// What computes a tensor again from others that are kept or computed again before it.
enum class Remake {
  Never,        ///< Where chains of recomputation begin, or it takes a collective.
  Elementwise,  ///< One kernel.
  Projection,   ///< A matrix product.
  Attention,    ///< The attention of the layer.
  Experts,      ///< A grouped matrix product.
};

struct SavedTensor {
  std::string_view name;
  double width = 0;  ///< Elements per token; of routed tensors per token before routing.
  double bytes = 2;  ///< Per element.
  Cut cut = Cut::Tensor;
  Part part = Part::Kept;
  Remake remake = Remake::Never;
  double inner =
      0;  ///< Inner size of the matrix product; tensors that an elementwise kernel reads.
};

class SavedTensors {
 public:
  void add(const SavedTensor& tensor) { tensors_[count_++] = tensor; }
  std::span<const SavedTensor> all() const { return {tensors_.data(), count_}; }
  /// Bytes that one device keeps per token of its micro-batch before any cut, without the tensors
  /// of `dropped`.
  double bytes_per_token(const Layout& layout,
                         const TrainShape& shape,
                         Recompute recompute,
                         std::uint32_t dropped = 0) const;

 private:
  std::array<SavedTensor, 28> tensors_{};
  std::size_t count_ = 0;
};

/// Of one device, per token and before any cut.
double tensor_bytes_per_token(const SavedTensor& tensor,
                              const Layout& layout,
                              const TrainShape& shape);

/// Whether silu(gate) is kept as well: module by module, or gate and up in one kernel.
enum class Gating { Fused, Eager };

/// The tensors that one layer saves for its backward pass.
SavedTensors saved_tensors(const ModelSpec& model,
                           const TrainShape& shape,
                           LayerKind kind,
                           Gating gating = Gating::Fused);

}  // namespace temper::sim_hw
