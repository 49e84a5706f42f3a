// The reference engine of `policy: synthetic`: returns a constant log-prob per token.
#pragma once

#include "actors/roles/reference_engine.hpp"

#include <utility>

namespace temper::actors {

class SyntheticReference final : public ReferenceEngine {
 public:
  Result<ReferenceScores> score(std::span<const ScoringRequest> batch) override {
    std::vector<std::vector<float>> logprobs;
    logprobs.reserve(batch.size());
    for (const ScoringRequest& request : batch) {
      logprobs.emplace_back(request.response.size(), -1.0F);
    }
    return ReferenceScores{std::move(logprobs)};
  }
  Bytes memory() const override { return {}; }
};

}  // namespace temper::actors
