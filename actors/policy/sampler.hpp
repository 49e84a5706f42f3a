// Drawing one token from logits. The recorded log-prob is of the distribution drawn from: after
// temperature, and after the nucleus has been cut and renormalised.
#pragma once

#include "core/ids.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace temper::actors {

/// A number in [0, 1) fixed by (seed, response, position): the same response draws the same numbers
/// whatever is generated beside it, and a resumed one goes on where it stopped.
double sampling_uniform(std::uint64_t seed, ResponseId response, std::int64_t position);

struct SampledToken {
  std::int32_t token = 0;
  float logprob = 0;
};

class Sampler {
 public:
  /// `top_p` as in nucleus sampling: the smallest set of most likely tokens with at least that
  /// much mass (ties: the lower id first).
  Sampler(double temperature, double top_p) : temperature_(temperature), top_p_(top_p) {}

  /// The token at `uniform` of the cumulative distribution in order of ids. A token of negative id:
  /// the logits are not finite.
  SampledToken draw(std::span<const float> logits, double uniform);
  /// The likeliest token, of equals that of the lowest id, as if drawn.
  SampledToken likeliest(std::span<const float> logits);

 private:
  void cut_nucleus();

  double temperature_;
  double top_p_;
  std::vector<float> p_;
  std::vector<std::int32_t> order_;
};

}  // namespace temper::actors
