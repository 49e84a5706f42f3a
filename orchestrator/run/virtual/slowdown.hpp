// An actor's own time if its cards stop or are slow for a while. It advances as the run's time
// does, except in these periods, in which it stops or advances more slowly. Integer nanoseconds;
// neither time ever goes back.
#pragma once

#include "core/units.hpp"

#include <cstdint>
#include <vector>

namespace temper::orchestrator {

class Slowdown {
 public:
  static constexpr std::int64_t kStops = 0;

  /// Until `until` work takes `times` as long, or stops. An earlier slowdown that lasts longer or
  /// is stronger still applies. Requires: now is not earlier than in any earlier call.
  void slow_down(Time now, std::int64_t times, Time until);
  /// Ends a stop, because the stopped actor is replaced. Slow cards stay slow.
  void release(Time now);

  bool stopped(Time now) const { return now < stopped_until_; }
  Time stopped_until() const { return stopped_until_; }
  /// The own time at a time of the run.
  Time own(Time run) const;
  /// The first time of the run at which own() is at least `own`.
  Time run(Time own) const;
  bool is_run_time() const { return parts_.empty(); }

 private:
  /// From `run` on; the own time is `own` there.
  struct Part {
    Time run, own;
    std::int64_t times;
  };
  void plan(Time now);

  std::vector<Part> parts_;  ///< By time; before the first both are the same.
  std::int64_t slow_times_ = 1;
  Time slow_until_{}, stopped_until_{};
};

}  // namespace temper::orchestrator
