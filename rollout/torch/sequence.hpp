// A response in a slot of the torch engine.
#pragma once

#include "core/ids.hpp"
#include "rollout/engine.hpp"

#include <cstdint>

namespace temper::rollout {

/// Its cache has every token but the last, which the next step feeds.
struct Sequence {
  GenerationRequest request;
  Generation out;
  std::int32_t slot = 0;
  std::int32_t cached = 0;
  std::int32_t last_token = 0;
  std::size_t limit = 0;  ///< Largest number of response tokens, including the prefix.
  PolicyVersion version;  ///< That samples its next token.
  bool outdated = false;  ///< Its cache has older weights, and must be recomputed.

  /// Response tokens so far, including the prefix.
  std::int64_t generated() const {
    return static_cast<std::int64_t>(request.prefix.size() + out.tokens.size());
  }
  std::int32_t token(std::int32_t position) const {
    auto at = static_cast<std::size_t>(position);
    for (const auto* part : {&request.prompt, &request.prefix}) {
      if (at < part->size())
        return (*part)[at];
      at -= part->size();
    }
    return out.tokens[at];
  }
};

}  // namespace temper::rollout
