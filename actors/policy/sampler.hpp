// Samples tokens from logits. The recorded log-prob is that of the sampling distribution: after
// temperature, nucleus cut and renormalization.
#pragma once

#include "core/ids.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace temper::actors {

/// A number in [0, 1) determined by (seed, response, position), so that a response draws the same
/// numbers whatever is generated beside it, and a resumed response continues unchanged.
double sampling_uniform(std::uint64_t seed, ResponseId response, std::int64_t position);

struct SampledToken {
  std::int32_t token = 0;
  float logprob = 0;
};

class Sampler {
 public:
  /// `top_p`: nucleus sampling from the smallest set of most likely tokens with at least this
  /// probability mass (ties: lower id first).
  Sampler(double temperature, double top_p) : temperature_(temperature), top_p_(top_p) {}

  /// Draws the token at `uniform` of the cumulative distribution in order of ids. A negative token
  /// means that the logits are not finite.
  SampledToken draw(std::span<const float> logits, double uniform);
  /// The most likely token (ties: lower id), with its log-prob as if it had been sampled.
  SampledToken likeliest(std::span<const float> logits);

 private:
  void cut_nucleus();

  double temperature_;
  double top_p_;
  std::vector<float> p_;
  std::vector<std::int32_t> order_;
};

}  // namespace temper::actors
