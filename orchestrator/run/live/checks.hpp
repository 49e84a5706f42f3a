// What an actor may say of the work it was given. Whoever breaks a rule here is given up by name,
// and nothing of what it said is stored or trained: an engine of the user's may be wrong in any
// way.
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

/// `before`: tokens that the response has already; `dispatched` and `newest`: versions that its
/// tokens are from. Error: which response, and what of it cannot be.
Status check(const actors::Generated::Item& item,
             std::size_t before,
             PolicyVersion dispatched,
             PolicyVersion newest,
             const ResponseLimits& limits);

/// Error: a log-prob that is not finite, or not one per token.
Status check_scores(std::span<const float> logprobs, std::size_t tokens, ResponseId response);

/// Error: a reward that is not finite.
Status check(const actors::Judged::Item& item, ResponseId response);

/// Error: another version than `expected`, or metrics that are not finite.
Status check(const actors::Trained& trained, PolicyVersion expected);

}  // namespace temper::orchestrator
