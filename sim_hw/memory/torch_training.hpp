// Peak memory of one training step of plain PyTorch modules on one device, as
// torch.cuda.max_memory_allocated counts it: weights, gradients and two moments in bf16, eager
// modules, fused attention, and a log-prob head over chunks of 4096 tokens that is always
// recomputed.
//
// Assumptions: gradients persist between steps; autograd saves the tensors of saved_tensors() with
// an eager SwiGLU; a full recompute saves each layer's input and rebuilds one layer at a time; the
// optimizer step adds nothing (fused). Norms are one kernel and save their 16-bit input. The
// caching allocator gives a tensor of 10 MiB or more whole blocks of 2 MiB and splits off only an
// excess above 1 MiB (c10/cuda/CUDACachingAllocator), which wastes 0.5 MiB for each 18944 x 3584
// matrix. Equation: states + saved activations + maximum over the moments of the backward pass:
//   in the head   3 FP32 chunks of logits (log-softmax output, its gradient, the logits' gradient),
//                 and, from the second chunk on, the head's gradient summed over the chunks so far;
//   in a layer    the rebuilt layer, and the gradients of its MLP's intermediates;
//   at the end    the dense gradient of the embedding.
// Constants: none fitted; a cuBLAS workspace of 32 MiB for each of its two handles on Hopper.
// Range: one device, bf16 throughout, head chunk of 4096 tokens.
// Measured on an H200 with qwen2.5-0.5b and 7b, 10 rows; see tests/sim_hw/memory.
#pragma once

#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace temper::sim_hw {

/// Tokens whose logits the head holds at once.
inline constexpr double kHeadChunk = 4096;

/// Bytes.
struct TorchTrainingMemory {
  double weights = 0;
  double gradients = 0;
  double moments = 0;
  double activations = 0;   ///< Saved by the layers and around them.
  double transient = 0;     ///< At the peak of the backward pass.
  double rounding = 0;      ///< Added by the allocator's block sizes.
  double workspace = 0;     ///< For cuBLAS.
  std::string_view moment;  ///< The moment of the peak: "head", "layer" or "embedding".

  std::array<std::pair<std::string_view, double>, 7> entries() const;
  double peak() const;
};

TorchTrainingMemory torch_training_memory(const ModelSpec& model,
                                          double batch,
                                          double seq,
                                          Recompute recompute);

}  // namespace temper::sim_hw
