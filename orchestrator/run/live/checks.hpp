// What must be true of the payloads of an actor's answers, which the scheduler does not see: an
// engine of the user's may be wrong in any way. What the scheduler sees it checks itself
// (scheduler/scheduler_claims.cpp). Whoever breaks a rule is replaced, and nothing of what it said
// is stored or trained.
#pragma once

#include "actors/protocol/weights.hpp"
#include "actors/protocol/work.hpp"

#include <span>

namespace temper::orchestrator {

/// What a response may be. Of our own engines only what concerns the record is checked.
struct ResponseLimits {
  Tokens longest{std::numeric_limits<std::int64_t>::max()};  ///< sampling.max_new_tokens.
  std::int32_t vocabulary = std::numeric_limits<std::int32_t>::max();
};

/// `before`: tokens that the response has already. Its segments are the scheduler's to check.
/// Error: which response, and what of it cannot be.
Status check(const actors::Generated::Item& item, std::size_t before, const ResponseLimits& limits);

/// Error: a log-prob that is not finite, or not one per token.
Status check_scores(std::span<const float> logprobs, std::size_t tokens, ResponseId response);

/// Error: which of them is not finite.
Status check(actors::UpdateMetrics metrics);

}  // namespace temper::orchestrator
