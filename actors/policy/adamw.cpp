#include "actors/policy/adamw.hpp"

#include "actors/policy/internal/kernels.hpp"
#include "actors/policy/internal/parallel.hpp"

#include <algorithm>
#include <cmath>

namespace temper::actors {

double gradient_norm(const FloatBuffer& gradients) {
  return std::sqrt(sum_of_parts(gradients.size(), [&](std::int64_t begin, std::int64_t end) {
    const std::span<const float> part(gradients.data() + begin, gradients.data() + end);
    return sum_of_squares(part);
  }));
}

void adamw_step(const AdamWConfig& config,
                const FloatBuffer& gradients,
                double norm,
                AdamWState& state,
                const TrainedFloats& trained) {
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
  for (const TensorSpec& tensor : trained.tensors) {
    step.weight_decay = tensor.shape.size() > 1 ? static_cast<float>(config.weight_decay) : 0.0f;
    for_each_part(tensor.elements(), [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t at = tensor.offset + begin;
      adamw(step,
            trained.values->data() + at,
            gradients.data() + at,
            state.first_moment.data() + at,
            state.second_moment.data() + at,
            end - begin);
    });
  }
}

}  // namespace temper::actors
