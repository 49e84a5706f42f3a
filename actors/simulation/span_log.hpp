// Records the activity of a simulated actor's cards as spans of virtual time. Adjacent spans of one
// state are joined, and reports are sent at most once per interval, so that logs stay small. The
// owner includes due() in its next_event() and calls report() when it advances. Usage is sent with
// the spans.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/runtime/role.hpp"
#include "actors/simulation/usage_meter.hpp"

#include <optional>

namespace temper::actors {

class SpanLog {
 public:
  explicit SpanLog(Duration interval) : interval_(interval) {}

  /// Requires: spans are added in order and do not overlap. Empty spans are ignored.
  void add(CardState state, Time begin, Time end) {
    if (begin >= end)
      return;
    if (!spans_.empty() && spans_.back().state == state && spans_.back().end == begin)
      spans_.back().end = end;
    else
      spans_.push_back({state, begin, end});
  }

  /// When the recorded spans are due for a report; empty if there are none.
  std::optional<Time> due() const {
    if (spans_.empty())
      return std::nullopt;
    return std::max(last_report_ + interval_, spans_.back().end);
  }
  void report(Time now, Outbox& out, UsageMeter* meter = nullptr) {
    if (const auto when = due(); when && *when <= now)
      flush(now, out, meter);
  }
  void flush(Time now, Outbox& out, UsageMeter* meter = nullptr) {
    last_report_ = now;
    if (spans_.empty())
      return;
    out.send(Activity{std::move(spans_), meter != nullptr ? meter->due(now) : std::nullopt});
    spans_.clear();
  }
  /// The last report: the remaining spans and the final usage.
  void finish(Time now, Outbox& out, UsageMeter& meter) {
    out.send(Activity{std::move(spans_), meter.report(now)});
    spans_.clear();
  }

 private:
  Duration interval_;
  std::vector<Span> spans_;
  Time last_report_{};
};

/// The earlier of two optional times.
inline std::optional<Time> earlier(std::optional<Time> a, std::optional<Time> b) {
  if (!a || !b)
    return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace temper::actors
