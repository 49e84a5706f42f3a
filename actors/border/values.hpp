// Bounds on values from engines, servers, Python roles, verifiers and agents. An error names the
// value found and the expected range; the caller adds the sender and the response.
#pragma once

#include "core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

/// A log-probability may exceed 0 by the rounding of a half-precision softmax.
inline constexpr double kLogprobRounding = 1e-3;
/// Lower bound for a sampled token. Its probability, exp(-100) = 4e-44, is near the smallest float
/// (exp(-103)); a float sampler cannot draw a less likely token.
inline constexpr double kLeastSampledLogprob = -100;
/// Lower bound for a token scored by another model. It can be as low as the difference of two
/// logits divided by the temperature, so only values beyond any half-precision model are rejected.
inline constexpr double kLeastScoredLogprob = -1e5;
/// Bound on the absolute value of a reward, of its parts and of their sum. Trainers square rewards
/// in float, whose largest value is 3.4e38: a sum over hundreds of responses stays finite.
inline constexpr double kLargestReward = 1e18;
inline constexpr std::size_t kLongestTermName = 100;
inline constexpr std::size_t kMostTerms = 100;
/// Longest text (in bytes) from a worker, such as an error: 4 KiB including the note about its
/// original length.
inline constexpr std::size_t kLongestText = 4096 - 32;

inline constexpr std::int32_t kAnyVocabulary = std::numeric_limits<std::int32_t>::max();

enum class LogprobOf { SampledToken, ScoredToken };

Status check_logprob(double value, LogprobOf of);
Status check_logprobs(std::span<const float> values, LogprobOf of);
Status check_reward(double value);
/// Rewards of the terms of a verifier, one per response. They become names of metrics, so a name
/// has 1 to kLongestTermName letters, digits and `_ - . :`. NaN: the term does not apply.
Status check_terms(const std::map<std::string, std::vector<double>>& terms, std::size_t responses);
/// Whether a term may have this name.
bool is_term_name(std::string_view name);
/// Valid ids are 0 to vocabulary - 1; kAnyVocabulary if the size is unknown.
Status check_token(std::int64_t id, std::int32_t vocabulary);

/// The arrays of one response, or of one attempt at it; one entry per token.
struct ResponseValues {
  std::span<const std::int32_t> tokens;
  std::span<const float> logprobs;
  std::span<const std::uint8_t> mask;  ///< Empty: every token was sampled.
  std::span<const float> rewards;      ///< Empty: no rewards per token.
};
struct ResponseLimits {
  std::size_t tokens = std::numeric_limits<std::size_t>::max();  ///< `sampling.max_new_tokens`.
  std::int32_t vocabulary = kAnyVocabulary;
  std::size_t top_k = 0;  ///< `algorithm.distillation_top_k`.
};
/// `prefix`: number of tokens from earlier attempts. Error InvalidInput: arrays of unequal length,
/// too many tokens, or a value out of bounds.
Status check_response(const ResponseValues& values,
                      std::size_t prefix,
                      const ResponseLimits& limits);
/// Checks the reference log-probs of a response of this many tokens.
Status check_scores(std::span<const float> logprobs, std::size_t tokens);
/// Checks the most likely tokens at each of this many response tokens: `top_k` different ones
/// (limits.top_k), whose probabilities do not exceed 1 together.
Status check_top(std::span<const std::int32_t> ids,
                 std::span<const float> logprobs,
                 std::size_t tokens,
                 const ResponseLimits& limits);

/// The text, or its beginning and a note about its length. Cuts between UTF-8 characters.
std::string bounded_text(std::string text, std::size_t most = kLongestText);

}  // namespace temper::actors
