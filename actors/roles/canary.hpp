// The canary of a policy version: a fixed token sequence and the log-probs that the trainer's
// weights give it. It is stored in the metadata of the weights image (key kCanaryKey), so that an
// engine that loads the image can verify that it computes the same policy.
#pragma once

#include "core/result.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

inline constexpr const char* kCanaryKey = "canary";

struct Canary {
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;  ///< Log-probs at temperature 1 of all tokens after the first.
  bool operator==(const Canary&) const = default;
};

/// The sequence for a vocabulary: 32 tokens, or one less than the context. Tokens 0 and 1 are
/// avoided if possible, because servers may treat padding and end tokens specially. Requires:
/// vocabulary >= 2, context >= 3.
std::vector<std::int32_t> canary_tokens(std::int32_t vocabulary, Tokens context);

/// JSON {"tokens": [...], "logprobs": [...]} with exact values.
std::string canary_text(const Canary& canary);
/// Error: Corrupt if the text does not have this form.
Result<Canary> parse_canary(std::string_view text);

/// Mean absolute difference. Requires: both have the same length and are not empty.
double mean_distance(std::span<const float> a, std::span<const float> b);

}  // namespace temper::actors
