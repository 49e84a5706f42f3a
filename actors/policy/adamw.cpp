#include "actors/policy/adamw.hpp"

#include "actors/policy/internal/kernels.hpp"

#include <algorithm>
#include <cmath>

namespace temper::actors {

double gradient_norm(const FloatBuffer& gradients) {
  return std::sqrt(sum_of_squares(gradients.span()));
}

void adamw_step(const AdamWConfig& config,
                const FloatBuffer& gradients,
                double norm,
                AdamWState& state,
                Weights& weights) {
  ++state.steps;
  const auto t = static_cast<double>(state.steps);
  AdamWStep step{};
  step.learning_rate = static_cast<float>(config.learning_rate);
  step.beta1 = static_cast<float>(config.beta1);
  step.beta2 = static_cast<float>(config.beta2);
  step.epsilon = static_cast<float>(config.epsilon);
  step.correction1 = static_cast<float>(1 - std::pow(config.beta1, t));
  step.correction2 = static_cast<float>(1 - std::pow(config.beta2, t));
  step.gradient_scale =
      norm > config.gradient_clip ? static_cast<float>(config.gradient_clip / norm) : 1.0f;
  for (const TensorSpec& tensor : weights.layout().tensors()) {
    step.weight_decay = tensor.shape.size() > 1 ? static_cast<float>(config.weight_decay) : 0.0f;
    adamw(step,
          weights.values().data() + tensor.offset,
          gradients.data() + tensor.offset,
          state.first_moment.data() + tensor.offset,
          state.second_moment.data() + tensor.offset,
          tensor.elements());
  }
}

}  // namespace temper::actors
