// How far the clock of a worker's host is ahead of ours, from heartbeats that it answers.
//
// Assumes nothing of the way but that a message does not arrive before it was sent. We say when we
// sent (s); the worker says in its next heartbeat which one it heard last, for how long it has held
// it (h), and what its clock is (w). At r it is here. The worker read w when our clock was between
// s + h and r, so it is ahead by w - (s + h + r) / 2, and at most (r - s - h) / 2 more or less.
// With time the error grows by kDrift. The answer with the least error counts.
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
  Duration error{};  ///< It may be so much more, or less.
};

class ClockEstimate {
 public:
  /// Two quartz clocks, each within 50 ppm, part by one second in so many.
  static constexpr std::int64_t kDrift = 10'000;

  /// A heartbeat of the worker, which is here at `now`.
  void note(const Heartbeat& answer, Time now);
  /// None: the worker has answered no heartbeat yet.
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
