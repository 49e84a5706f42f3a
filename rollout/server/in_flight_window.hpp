// Limits the requests in flight to a server by the load that it reports: more while its KV cache
// has space and nothing is queued, fewer when it is nearly full, queues or preempts. Thresholds as
// in prime-rl (orchestrator/concurrency.py, 2026).
#pragma once

#include "actors/server/server_api.hpp"

#include <algorithm>
#include <cstddef>

namespace temper::rollout {

class InFlightWindow {
 public:
  /// Starts with `start` requests, and stays within the bounds [1, most].
  InFlightWindow(std::size_t start, std::size_t most)
      : most_(static_cast<double>(std::max<std::size_t>(1, most))),
        size_(std::clamp(static_cast<double>(start), 1.0, most_)) {}

  std::size_t size() const { return static_cast<std::size_t>(size_); }

  /// `in_flight`: current requests of this engine.
  void adjust(const actors::ServerLoad& load, std::size_t in_flight) {
    const bool preempted = load.preemptions > preemptions_;
    preemptions_ = load.preemptions;
    if (preempted || load.cache_used > kFull) {
      size_ *= kShrink;
    } else if (load.cache_used > kHigh || load.waiting > kQueued * std::max(1.0, load.running)) {
      size_ *= kTrim;
    } else if (load.cache_used < kRoomy && static_cast<double>(in_flight) >= kUsed * size_) {
      size_ *= kGrow;
    }
    size_ = std::clamp(size_, 1.0, most_);
  }

 private:
  static constexpr double kRoomy = 0.6, kHigh = 0.8, kFull = 0.9;  ///< Shares of the KV cache.
  static constexpr double kQueued = 0.5;                           ///< Queued relative to running.
  static constexpr double kUsed = 0.9;  ///< Share of the window in use before it grows.
  static constexpr double kGrow = 1.25, kTrim = 0.95, kShrink = 0.8;

  const double most_;
  double size_;
  double preemptions_ = 0;
};

}  // namespace temper::rollout
