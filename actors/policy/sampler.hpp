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

/// How a token is chosen.
struct Choice {
  bool greedy = false;  ///< The most likely one.
  double uniform = 0;
};

class Sampler {
 public:
  /// `top_p`: nucleus sampling from the smallest set of most likely tokens with at least this
  /// probability mass (ties: lower id first).
  Sampler(double temperature, double top_p) : temperature_(temperature), top_p_(top_p) {}

  /// Draws the token at `uniform` of the cumulative distribution in order of ids. A negative token
  /// means that the logits are not finite. Overwrites the logits, as the others do.
  SampledToken draw(std::span<float> logits, double uniform) const;
  /// The most likely token (ties: lower id), with its log-prob as if it had been sampled.
  SampledToken likeliest(std::span<float> logits) const;
  /// One token for each choice, from `logits` of as many rows.
  std::vector<SampledToken> sample(std::span<float> logits, std::span<const Choice> choices) const;

 private:
  void cut_nucleus(std::span<float> p) const;

  double temperature_;
  double top_p_;
};

}  // namespace temper::actors
