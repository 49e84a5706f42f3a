// AdamW over a flat array of weights or of an adapter (Loshchilov and Hutter, 2019), with clipping
// of the global gradient norm. Norm weights (one-dimensional tensors) have no weight decay.
#pragma once

#include "actors/policy/weights.hpp"

namespace temper::actors {

struct AdamWConfig {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double gradient_clip = 1.0;
};

/// The optimizer state that a checkpoint must contain: the moments and the number of steps.
struct AdamWState {
  /// Zero moments of `floats` trained floats.
  explicit AdamWState(std::int64_t floats) : first_moment(floats), second_moment(floats) {}
  explicit AdamWState(const Layout& layout) : AdamWState(layout.size()) {}
  AdamWState(FloatBuffer m, FloatBuffer v, std::int64_t n)
      : first_moment(std::move(m)), second_moment(std::move(v)), steps(n) {}

  FloatBuffer first_moment;
  FloatBuffer second_moment;
  std::int64_t steps = 0;
};

double gradient_norm(const FloatBuffer& gradients);

/// The trained floats: tensors in one flat array.
struct TrainedFloats {
  TrainedFloats(std::span<const TensorSpec> specs, FloatBuffer& floats)
      : tensors(specs), values(&floats) {}
  TrainedFloats(Weights& weights)  // NOLINT(google-explicit-constructor)
      : TrainedFloats(weights.layout().tensors(), weights.values()) {}
  TrainedFloats(Adapter& adapter)  // NOLINT(google-explicit-constructor)
      : TrainedFloats(adapter.layout().tensors(), adapter.values()) {}

  std::span<const TensorSpec> tensors;
  FloatBuffer* values;
};

/// Applies one step. Requires: `norm` is gradient_norm(gradients) and is finite; gradients and
/// moments have the places of the trained floats.
void adamw_step(const AdamWConfig& config,
                const FloatBuffer& gradients,
                double norm,
                AdamWState& state,
                const TrainedFloats& trained);

}  // namespace temper::actors
