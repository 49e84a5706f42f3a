// Records what an actor's cards are busy with as spans on the run's clock. Adjacent spans of one
// state are joined and reported together, so that a decode step of half a millisecond costs no
// message.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/runtime/role.hpp"
#include "core/clock.hpp"

namespace temper::actors {

class ActivityLog {
 public:
  explicit ActivityLog(const Clock& clock) : clock_(&clock) {}

  Time now() const { return clock_->now(); }

  /// Records [begin, now()). Requires: spans are added in order and do not overlap.
  void add(CardState state, Time begin) {
    const Time end = now();
    if (!spans_.empty() && spans_.back().state == state && begin - spans_.back().end <= kJoin) {
      spans_.back().end = end;
    } else {
      spans_.push_back({state, begin, end});
    }
  }

  /// Sends the recorded spans if the last report is old enough.
  void report(Outbox& out) {
    if (!spans_.empty() && now() - last_report_ >= kInterval)
      flush(out);
  }
  /// Discards the recorded spans, because the clock belongs to another run now.
  void forget() {
    spans_.clear();
    last_report_ = {};
  }
  void flush(Outbox& out) {
    last_report_ = now();
    if (spans_.empty())
      return;
    out.send(Activity{std::move(spans_)});
    spans_.clear();
  }

 private:
  static constexpr Duration kJoin = std::chrono::microseconds(100);
  static constexpr Duration kInterval = std::chrono::milliseconds(100);

  const Clock* clock_;
  std::vector<Span> spans_;
  Time last_report_{};
};

}  // namespace temper::actors
