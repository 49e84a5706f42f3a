// Selective recompute and swap: for each saved tensor of a layer (sim_hw/memory/activations.hpp)
// whether it is kept, computed again in the backward pass, or moved to host memory and back.
//
// Equations, of a layer and micro-batch on one device:
//   recompute = sum of the operators that make the dropped tensors again, each from tensors that
//     are kept or made again before it (a chain costs the sum of its links)
//   swap      = excess of bytes / link rate over the layer's compute, out beside the forward pass,
//     in beside the backward one
// The choice is greedy: while the fullest device's ledger exceeds its memory, the tensor and way
// that free the most bytes per second that the layer gains; swaps that compute hides are free.
// Assumed: the link is each device's own; a tensor has one fate in every layer of its kind.
// Constants: those of operators and of the host's links. Threads: pure functions.
#pragma once

#include "sim_hw/memory/activations.hpp"
#include "sim_hw/parallel/layer_cost.hpp"

#include <optional>

namespace temper::sim_hw {

/// Seconds that make the tensors of `which` again.
double remake_seconds(const StepInputs& in, LayerKind kind, std::uint32_t which);
/// Bytes on one device of the tensors named in `which`.
double saved_bytes(const StepInputs& in, LayerKind kind, std::uint32_t which);

/// What a device and its share of the host have.
struct MemoryLimits {
  double device = 0;
  double host = 0;  ///< For swapped activations.
};
MemoryLimits memory_limits(const HardwareSpec& hardware);

/// Bytes of swapped tensors that a device has in host memory at once, on the fullest stage.
double swapped_bytes(const StepInputs& in);

/// The plan under which the ledger fits; none where even dropping all that can be does not. The
/// shape's own plan is where it starts from. Takes about a millisecond: not for hot loops.
std::optional<ActivationPlan> choose_activations(const StepInputs& in, const MemoryLimits& limits);

}  // namespace temper::sim_hw
