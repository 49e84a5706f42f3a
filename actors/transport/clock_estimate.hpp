// Estimates the offset between the clock of a worker's host and ours from answered heartbeats.
//
// The only assumption is that a message does not arrive before it is sent. We send a heartbeat at
// time s of our clock. In its next heartbeat the worker names the one it received last, how long
// ago that was (h), and its own clock (w). This arrives at time r. The worker read w when our clock
// was between s + h and r, so its clock is ahead by w - (s + h + r) / 2, with an error of at most
// (r - s - h) / 2. The error grows with time by kDrift. The answer with the smallest error is used.
//
// Thread-safe.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "core/thread_annotations.hpp"
#include "core/units.hpp"

#include <optional>

namespace temper::actors {

struct ClockReading {
  Duration ahead{};
  Duration error{};  ///< Largest deviation in either direction.
};

class ClockEstimate {
 public:
  /// Two quartz clocks with 50 ppm tolerance each drift apart by at most 1 / kDrift.
  static constexpr std::int64_t kDrift = 10'000;

  /// Adds a heartbeat of the worker that arrived at `now`.
  void note(const Heartbeat& answer, Time now);
  /// Empty until the worker has answered a heartbeat.
  std::optional<ClockReading> at(Time now) const;

 private:
  struct Sample {
    ClockReading reading;
    Time taken{};
  };
  static Duration error_at(const Sample& sample, Time now);

  mutable Mutex mutex_;
  std::optional<Sample> best_ TEMPER_GUARDED_BY(mutex_);
};

}  // namespace temper::actors
