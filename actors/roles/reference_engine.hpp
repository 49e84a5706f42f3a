// The engine of a reference actor: log-probs of given responses under fixed weights.
#pragma once

#include "actors/protocol/top_tokens.hpp"
#include "core/result.hpp"
#include "core/units.hpp"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace temper::actors {

struct ScoringRequest {
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> response;
};

/// One entry per request. Log-probs are natural logarithms, at the run's temperature.
struct ReferenceScores {
  std::vector<std::vector<float>> logprobs;     ///< One per response token.
  std::optional<std::vector<TopTokens>> top{};  ///< None unless the engine was made for them.
};

class ReferenceEngine {
 public:
  virtual ~ReferenceEngine() = default;
  /// Errors: InvalidInput for a request that the model cannot score; otherwise the failure of the
  /// engine. An error ends the actor.
  virtual Result<ReferenceScores> score(std::span<const ScoringRequest> batch) = 0;
  /// Bytes of weights on the cards.
  virtual Bytes memory() const = 0;
};

}  // namespace temper::actors
