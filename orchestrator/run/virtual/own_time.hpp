// The time that an actor has had, where its cards stand still or are slow for a while: its own time
// goes on as that of the run does, but for these whiles, in which it stands, or goes on so many
// times more slowly. Integer nanoseconds; neither ever goes back.
#pragma once

#include "core/units.hpp"

#include <cstdint>
#include <vector>

namespace temper::orchestrator {

class OwnTime {
 public:
  static constexpr std::int64_t kStands = 0;

  /// From now on until `until` work takes so many times as long, or stands. What was so before and
  /// would last longer, or is slower, does. Requires: now is not earlier than in any call before.
  void hinder(Time now, std::int64_t times, Time until);
  /// It stands no longer: who stood is replaced. What is slow stays slow.
  void release(Time now);

  bool stands(Time now) const { return now < stands_until_; }
  Time stands_until() const { return stands_until_; }
  /// At this time of the run.
  Time own(Time run) const;
  /// The first time of the run at which own() is `own` or later.
  Time run(Time own) const;
  bool is_that_of_the_run() const { return parts_.empty(); }

 private:
  /// From `run` on, when it is `own` here.
  struct Part {
    Time run, own;
    std::int64_t times;
  };
  void plan(Time now);

  std::vector<Part> parts_;  ///< By time; before the first both are the same.
  std::int64_t slow_times_ = 1;
  Time slow_until_{}, stands_until_{};
};

}  // namespace temper::orchestrator
