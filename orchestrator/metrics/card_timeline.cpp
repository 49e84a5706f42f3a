#include "orchestrator/metrics/card_timeline.hpp"

#include <algorithm>
#include <iterator>

namespace temper::orchestrator {

Time CardTimeline::end_of(Segments::const_iterator it) const {
  const auto after = std::next(it);
  return after == segments_.end() ? Time::max() : after->first;
}

void CardTimeline::account(const Segment& s, Duration d) {
  closed_[index_of(s.state())] += d;
  if (s.busy != kNotBusy)
    return;
  if (waits_.size() <= s.wait.reason)
    waits_.resize(s.wait.reason + 1);
  waits_[s.wait.reason] += d;
}

CardTimeline::Segments::iterator CardTimeline::split(Time at) {
  const auto it = std::prev(segments_.upper_bound(at));
  if (it->first == at)
    return it;
  if (std::next(it) == segments_.end())
    account(it->second, at - it->first);  // the open one is closed here
  return segments_.emplace_hint(std::next(it), at, it->second);
}

void CardTimeline::join(Segments::iterator from, Time to) {
  if (from != segments_.begin())
    --from;
  for (auto it = from; std::next(it) != segments_.end() && it->first <= to;) {
    const auto after = std::next(it);
    if (!(after->second == it->second)) {
      it = after;
      continue;
    }
    if (std::next(after) == segments_.end())
      account(it->second, -(after->first - it->first));  // becomes part of the open one
    segments_.erase(after);
  }
}

void CardTimeline::set_wait(Time at, CardWait wait) {
  at = std::max(at, settled_);
  const auto first = split(at);
  for (auto it = first; it != segments_.end(); ++it) {
    const Time end = end_of(it);
    if (end != Time::max())
      account(it->second, -(end - it->first));
    it->second.wait = wait;
    if (end != Time::max())
      account(it->second, end - it->first);
  }
  join(first, Time::max());
}

void CardTimeline::add_span(const actors::Span& span) {
  const Time begin = std::max(span.begin, settled_);
  if (span.state > actors::CardState::Switch || begin >= span.end)
    return;
  const auto first = split(begin);
  const auto last = split(span.end);
  for (auto it = first; it != last; ++it) {
    if (it->second.busy <= span.state)
      continue;
    const Duration length = std::next(it)->first - it->first;
    account(it->second, -length);
    it->second.busy = span.state;
    account(it->second, length);
  }
  join(first, span.end);
}

/// Visits what must be added to the closed segments' totals to get those over [0, until].
template <class Visit>
void CardTimeline::visit_difference(Time until, Visit&& visit) const {
  until = std::max(until, settled_);
  for (auto it = segments_.end(); it != segments_.begin();) {
    --it;
    const Time end = end_of(it);
    const bool open = end == Time::max();
    if (end <= until)
      return;
    if (it->first >= until) {
      if (!open)
        visit(it->second, -(end - it->first));
    } else {
      visit(it->second, open ? until - it->first : -(end - until));
    }
  }
}

StateTimes CardTimeline::totals(Time until) const {
  StateTimes times = closed_;
  visit_difference(until, [&](const Segment& s, Duration d) { times[index_of(s.state())] += d; });
  return times;
}

std::vector<Duration> CardTimeline::waits(Time until) const {
  std::vector<Duration> waits = waits_;
  visit_difference(until, [&](const Segment& s, Duration d) {
    if (s.busy != kNotBusy)
      return;
    if (waits.size() <= s.wait.reason)
      waits.resize(s.wait.reason + 1);
    waits[s.wait.reason] += d;
  });
  return waits;
}

void CardTimeline::settle(Time before, const Sink& sink) {
  while (segments_.size() > 1 &&
         (end_of(segments_.begin()) <= before || segments_.size() > kMostSegments)) {
    const auto it = segments_.begin();
    if (sink)
      sink({it->first, end_of(it), it->second.state(), it->second.wait.reason});
    settled_ = end_of(it);
    segments_.erase(it);
  }
}

void CardTimeline::finish(Time end, const Sink& sink) {
  for (auto it = segments_.begin(); it != segments_.end() && it->first < end; ++it) {
    if (sink)
      sink({it->first, std::min(end, end_of(it)), it->second.state(), it->second.wait.reason});
  }
}

}  // namespace temper::orchestrator
