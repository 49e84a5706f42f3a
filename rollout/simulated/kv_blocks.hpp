// Counts the blocks of an engine's KV cache: how many its responses hold, and for how many decode
// steps they suffice, without iterating over responses.
//
// Every decode step caches one token of each response. A response with `own` cached tokens needs
// own / block + 1 blocks for the next step, so its need grows whenever `own` reaches a multiple of
// the block: responses are counted by their phase, (own - steps so far) mod block.
#pragma once

#include "core/check.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace temper::rollout {

class KvBlocks {
 public:
  /// Requires: block >= 1.
  KvBlocks(std::int64_t capacity, std::int64_t block)
      : capacity_(capacity), block_(block), phases_(static_cast<std::size_t>(block), 0) {}

  std::int64_t capacity() const { return capacity_; }
  std::int64_t block() const { return block_; }
  /// Blocks that the next decode step needs.
  std::int64_t used() const { return used_; }
  std::int64_t free() const { return capacity_ - used_; }
  /// Blocks that a response with `own` cached tokens needs for its next step.
  std::int64_t needs(std::int64_t own) const { return own / block_ + 1; }

  void add(std::int64_t own) {
    used_ += needs(own);
    ++responses_;
    ++phases_[phase(own)];
  }
  void remove(std::int64_t own) {
    used_ -= needs(own);
    --responses_;
    --phases_[phase(own)];
  }
  /// Adds blocks that do not grow: the prompt of a group.
  void hold(std::int64_t blocks) { used_ += blocks; }
  void release(std::int64_t blocks) { used_ -= blocks; }

  /// Largest number of steps, up to `limit`, that all responses can take.
  std::int64_t steps(std::int64_t limit) const {
    if (free() < 0)
      return 0;
    std::int64_t left = free();
    if (responses_ * (limit / block_ + 1) <= left || responses_ == 0)
      return limit;
    // Step 1 is counted; each further step needs a block for every multiple crossed before it.
    const std::int64_t cycles = left / responses_;
    left -= cycles * responses_;
    std::int64_t steps = 1 + cycles * block_;
    for (std::size_t at = base_; steps < limit; ++steps) {
      at = before(at);
      left -= phases_[at];
      if (left < 0)
        break;
    }
    return std::min(steps, limit);
  }
  void advance(std::int64_t steps) {
    used_ += steps / block_ * responses_;
    // The phases before base_, cyclically.
    const auto crossed = static_cast<std::size_t>(steps % block_);
    const auto to_start = std::min(crossed, base_);
    used_ += sum(base_ - to_start, base_);
    const std::size_t end = phases_.size();
    used_ += sum(end - (crossed - to_start), end);
    base_ = (base_ + end - crossed) % end;
  }

 private:
  /// base_ is the phase of responses whose cached tokens are now a multiple of the block.
  std::size_t phase(std::int64_t own) const {
    return (base_ + static_cast<std::size_t>(own % block_)) % static_cast<std::size_t>(block_);
  }
  std::int64_t sum(std::size_t from, std::size_t to) const {
    std::int32_t out = 0;
    for (std::size_t i = from; i < to; ++i)
      out += phases_[i];
    return out;
  }
  std::size_t before(std::size_t at) const {
    return (at == 0 ? static_cast<std::size_t>(block_) : at) - 1;
  }

  std::int64_t capacity_;
  std::int64_t block_;
  std::vector<std::int32_t> phases_;
  std::size_t base_ = 0;
  std::int64_t responses_ = 0;
  std::int64_t used_ = 0;
};

}  // namespace temper::rollout
