// Selective recompute and swap: decides for each saved tensor of a layer
// (sim_hw/memory/activations.hpp) whether it is kept, recomputed in the backward pass, or moved to
// host memory and back.
//
// Equations, for a layer and micro-batch on one device:
//   recompute = sum of the operators that recompute the dropped tensors, each from tensors that are
//     kept or recomputed before it (a chain costs the sum of its links)
//   swap      = excess of bytes / link rate over the layer's compute; swap-out overlaps the forward
//     pass, swap-in the backward pass
// The choice is greedy: while the ledger of the fullest device exceeds its memory, take the tensor
// and method that free the most bytes per added second; swaps that compute hides are free.
// Assumed: each device has its own host link; a tensor is treated alike in every layer of its kind.
// Constants: those of operators and of the host's links. Threads: pure functions.
#pragma once

#include "sim_hw/memory/activations.hpp"
#include "sim_hw/parallel/layer_cost.hpp"

#include <optional>

namespace temper::sim_hw {

/// Seconds to recompute the tensors in the bit set `which`.
double recompute_seconds(const StepInputs& in, LayerKind kind, std::uint32_t which);
/// Bytes on one device of the tensors in the bit set `which`, per micro-batch.
double saved_bytes(const StepInputs& in, LayerKind kind, std::uint32_t which);

/// Bytes available on a device and in its share of the host.
struct MemoryLimits {
  double device = 0;
  double host = 0;  ///< Available for swapped activations.
};
MemoryLimits memory_limits(const HardwareSpec& hardware);

/// Bytes of swapped tensors that a device holds in host memory at once, on the fullest stage.
double swapped_bytes(const StepInputs& in);

/// Bytes that a device swaps out for one micro-batch, and as many in: mean over the stages.
double swap_traffic(const StepInputs& in);

/// Forward passes of attention per micro-batch, with recomputation: mean over the layers, 1 to 2.
double attention_passes(const StepInputs& in);

/// The plan under which the ledger fits, starting from the shape's own plan; none if it does not
/// fit even with everything dropped. `policy` limits the methods; Full is treated as Auto. Takes
/// about a millisecond: not for hot loops.
std::optional<ActivationPlan> choose_activations(const StepInputs& in,
                                                 const MemoryLimits& limits,
                                                 ActivationPolicy policy = ActivationPolicy::Auto);

/// The shape under a policy. If no plan fits, nothing is dropped, and the ledger shows by how much
/// it does not fit.
TrainShape with_activations(const StepInputs& in,
                            const MemoryLimits& limits,
                            ActivationPolicy policy);

}  // namespace temper::sim_hw
