// Tensors of the responses of a simulated engine, in the memory of its hosts
// (actors/simulation/tensor_fetch.hpp). In bytes over all devices; each response counts
// response_weight times. One owner, no threads.
#pragma once

#include "actors/protocol/counted.hpp"
#include "actors/protocol/usage.hpp"
#include "actors/simulation/simulation_config.hpp"

#include <map>
#include <vector>

namespace temper::rollout {

class HeldTensors {
 public:
  explicit HeldTensors(const actors::SimulatedRun& run)
      : config_(run.config.tensors), weight_(run.response_weight) {}

  bool any() const { return config_.any(); }
  /// The engine continues this response after so many tokens.
  void begin(ResponseId response, std::int64_t prefix) {
    if (any() && prefix > 0)
      prefixes_[response] = Tokens(prefix);
  }
  /// Attempts that end; those that were seen before are at the front. Returns the bytes of the
  /// responses that are complete.
  Bytes end(const std::vector<actors::CountedGenerated::Item>& ended) {
    Bytes more;
    for (; any() && seen_ < ended.size(); ++seen_)
      more += end(ended[seen_]);
    held_ += more;
    return more;
  }
  /// All attempts that ended were reported.
  void reported() { seen_ = 0; }
  /// Returns the bytes that are no longer held.
  Bytes release(const actors::CountedRelease& released) {
    Bytes less;
    for (const ResponseId response : released.responses) {
      if (const auto held = of_.extract(response); !held.empty())
        less += held.mapped();
    }
    held_ -= less;
    return less;
  }

  Bytes held() const { return held_; }
  /// With those of responses that are generated and have so many tokens.
  double held_beside(std::int64_t running_tokens) const {
    return static_cast<double>((held_ + config_.per_token * (running_tokens * weight_)).count());
  }

 private:
  Bytes end(const actors::CountedGenerated::Item& item) {
    const auto prefix = prefixes_.extract(item.response);
    if (item.finish != actors::FinishReason::End && item.finish != actors::FinishReason::Length)
      return {};
    const Tokens before = prefix.empty() ? Tokens(0) : prefix.mapped();
    return of_[item.response] = config_.of(item.prompt + before + item.tokens) * weight_;
  }

  const actors::TensorConfig config_;
  const std::int64_t weight_;
  std::map<ResponseId, Tokens> prefixes_;  ///< Of attempts that continue a response.
  std::map<ResponseId, Bytes> of_;         ///< Complete ones.
  Bytes held_;                             ///< Their sum.
  std::size_t seen_ = 0;                   ///< Attempts that were passed to end().
};

}  // namespace temper::rollout
