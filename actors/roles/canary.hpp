// The canary of a version: a fixed sequence of tokens and the log-probs that the trainer's weights
// give it. It travels in the metadata of the weights' image (key kCanaryKey), so that whoever loads
// the image elsewhere can see whether what was loaded is what was trained.
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
  std::vector<float> logprobs;  ///< At temperature 1, of all tokens but the first.
  bool operator==(const Canary&) const = default;
};

/// The sequence for a vocabulary: 32 tokens, or what the context holds with one to spare. Tokens 0
/// and 1 are left out where others are there: servers may treat padding and ends in their own way.
/// Requires: vocabulary >= 2, context >= 3.
std::vector<std::int32_t> canary_tokens(std::int32_t vocabulary, Tokens context);

/// {"tokens": [...], "logprobs": [...]}, exact.
std::string canary_text(const Canary& canary);
/// Error (Corrupt): it is not of this form.
Result<Canary> parse_canary(std::string_view text);

/// Mean of the absolute differences. Requires: as many of one as of the other, and some.
double mean_distance(std::span<const float> a, std::span<const float> b);

}  // namespace temper::actors
