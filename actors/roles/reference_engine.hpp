// The engine of a reference actor: log-probs of given responses under fixed weights.
#pragma once

#include "core/result.hpp"
#include "core/units.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace temper::actors {

struct ScoringRequest {
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> response;
};

class ReferenceEngine {
 public:
  virtual ~ReferenceEngine() = default;
  /// Returns, per request, one log-prob per response token (natural logarithm, at the run's
  /// temperature). Errors: InvalidInput for a request that the model cannot score; otherwise the
  /// failure of the engine. An error ends the actor.
  virtual Result<std::vector<std::vector<float>>> score(std::span<const ScoringRequest> batch) = 0;
  /// Bytes of weights on the cards.
  virtual Bytes memory() const = 0;
};

}  // namespace temper::actors
