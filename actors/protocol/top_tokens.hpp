// The most likely tokens of a teacher at each token of a response, for a loss on more of its
// distribution than the sampled token (trainer/top_k_loss.hpp).
#pragma once

#include "core/describe.hpp"

#include <cstdint>
#include <vector>

namespace temper::actors {

/// K tokens for each response token, from the first token on: entry t * K + i is the i-th at token
/// t. All empty: none were asked for.
struct TopTokens {
  std::vector<std::int32_t> ids;
  std::vector<float> logprobs;

  bool empty() const { return ids.empty() && logprobs.empty(); }
  bool operator==(const TopTokens&) const = default;
};
void describe(auto& v, TopTokens& m) {
  v.field(1, "ids", m.ids, {.doc = "K token ids for each response token, one after another."});
  v.field(2, "logprobs", m.logprobs, {.doc = "The log-prob of each of them."});
}

}  // namespace temper::actors
