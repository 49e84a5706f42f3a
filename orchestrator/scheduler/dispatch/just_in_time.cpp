#include "orchestrator/scheduler/dispatch/just_in_time.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace temper::orchestrator {
namespace {

/// Part of a period that is not worth holding back for.
constexpr std::int64_t kShortest = 64;
/// Of margin.
constexpr std::int64_t kMostPeriods = 16;

Duration share_of(Duration d, double share) {
  return Duration(std::llround(static_cast<double>(d.count()) * share));
}

}  // namespace

void JustInTime::trainable(GroupId group, Time now) {
  const auto it = began_.find(group);
  if (it == began_.end())
    return;
  latencies_.push_back(now - it->second);
  if (latencies_.size() > kWindow * static_cast<std::size_t>(batch_))
    latencies_.pop_front();
  began_.erase(it);
}

void JustInTime::update_begins(Time now) {
  if (waits_since_ && period_) {
    const Duration waited = now - *waits_since_;
    const Duration calm = share_of(*period_, kDecay);
    if (waited > calm && held_)
      margin_ = std::min(margin_ + waited, *period_ * kMostPeriods);
    else
      margin_ = std::max(Duration{}, margin_ - calm);
  }
  waits_since_.reset();
  held_ = false;
  training_since_ = now;
}

void JustInTime::update_ends(Time now) {
  if (training_since_) {
    const Duration took = now - *training_since_;
    period_ = period_ ? share_of(*period_, 1 - kPaceWeight) + share_of(took, kPaceWeight) : took;
  }
  training_since_.reset();
  waits_since_ = now;
  learn_latency();
}

void JustInTime::update_canceled(Time now) {
  training_since_.reset();
  waits_since_ = now;
}

void JustInTime::learn_latency() {
  if (latencies_.size() < static_cast<std::size_t>(batch_))
    return;
  std::vector<Duration> sorted(latencies_.begin(), latencies_.end());
  const auto at =
      static_cast<std::ptrdiff_t>(std::ceil(kShare * static_cast<double>(sorted.size())) - 1);
  std::nth_element(sorted.begin(), sorted.begin() + at, sorted.end());
  latency_ = sorted[static_cast<std::size_t>(at)];
}

std::optional<Time> JustInTime::due(std::int64_t ahead, Time now) const {
  if (!period_ || !latency_)
    return std::nullopt;
  const Time next = training_since_ ? std::max(now, *training_since_ + *period_) : now;
  const Time due = next + *period_ * (ahead / batch_) - *latency_ - margin_;
  if (due < now + *period_ / kShortest)
    return std::nullopt;
  return next > now ? due : Time::max();
}

}  // namespace temper::orchestrator
