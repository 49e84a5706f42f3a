#include "actors/transport/clock_estimate.hpp"

namespace temper::actors {
namespace {

/// 36 years. No real clock is beyond it, and sums of times below it do not overflow.
constexpr Time kFarthest{Duration(Duration::rep{1} << 60)};

/// Earliest time at which the worker can have read its clock; empty if the answer is impossible.
std::optional<Time> earliest_reading(const Heartbeat& answer, Time now) {
  const HeartbeatAnswer& to = *answer.answers;
  if (answer.sent > kFarthest || answer.sent < Time(-kFarthest.time_since_epoch()))
    return std::nullopt;
  if (to.sent < Time() || to.sent > now || to.held < Duration(0) || to.held > now - to.sent)
    return std::nullopt;
  return to.sent + to.held;
}

}  // namespace

Duration ClockEstimate::error_at(const Sample& sample, Time now) {
  return sample.reading.error + (now - sample.taken) / kDrift;
}

void ClockEstimate::note(const Heartbeat& answer, Time now) {
  const auto earliest = answer.answers ? earliest_reading(answer, now) : std::nullopt;
  if (!earliest)
    return;
  const Duration error = (now - *earliest) / 2;
  const Sample sample{{answer.sent - *earliest - error, error}, now};
  const MutexLock lock(mutex_);
  if (!best_ || error <= error_at(*best_, now))
    best_ = sample;
}

std::optional<ClockReading> ClockEstimate::at(Time now) const {
  const MutexLock lock(mutex_);
  if (!best_)
    return std::nullopt;
  return ClockReading{best_->reading.ahead, error_at(*best_, now)};
}

}  // namespace temper::actors
