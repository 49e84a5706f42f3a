#include "orchestrator/run/virtual/slowdown.hpp"

#include <algorithm>

namespace temper::orchestrator {

void Slowdown::slow_down(Time now, std::int64_t times, Time until) {
  if (times == kStops) {
    stopped_until_ = std::max(stopped_until_, until);
  } else {
    slow_times_ = now < slow_until_ ? std::max(slow_times_, times) : times;
    slow_until_ = std::max(slow_until_, until);
  }
  plan(now);
}

void Slowdown::release(Time now) {
  if (!stopped(now))
    return;
  stopped_until_ = now;
  plan(now);
}

/// Replaces the plan from now on.
void Slowdown::plan(Time now) {
  const Time here = own(now);
  std::erase_if(parts_, [&](const Part& part) { return part.run >= now; });
  const auto begin = [this](Time run, Time from, std::int64_t times) {
    parts_.push_back({run, from, times});
  };
  Time at = now;
  if (stopped(at)) {
    begin(at, here, kStops);
    at = stopped_until_;
  }
  if (at < slow_until_) {
    begin(at, here, slow_times_);
    begin(slow_until_, here + (slow_until_ - at) / slow_times_, 1);
  } else {
    begin(at, here, 1);
  }
}

Time Slowdown::own(Time run) const {
  const auto behind = std::ranges::upper_bound(parts_, run, {}, &Part::run);
  if (behind == parts_.begin())
    return run;
  const Part& part = *std::prev(behind);
  return part.times == kStops ? part.own : part.own + (run - part.run) / part.times;
}

Time Slowdown::run(Time own) const {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (own <= part.own)
      return i == 0 ? std::min(own, part.run) : part.run;
    const bool last = i + 1 == parts_.size();
    if (part.times != kStops && (last || own <= parts_[i + 1].own))
      return part.run + (own - part.own) * part.times;
  }
  return own;
}

}  // namespace temper::orchestrator
