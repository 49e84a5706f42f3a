#include "orchestrator/metrics/card_timeline.hpp"

#include <algorithm>
#include <iterator>

namespace temper::orchestrator {

const CardWait& CardTimeline::Segment::wait() const {
  if (next != kNobody)
    return waits[next];
  const auto up = std::ranges::find_if(
      waits, [](const CardWait& w) { return w.state != actors::CardState::Down; });
  return up == waits.end() ? waits.front() : *up;
}

Time CardTimeline::end_of(Segments::const_iterator it) const {
  const auto after = std::next(it);
  return after == segments_.end() ? Time::max() : after->first;
}

void CardTimeline::account(const Segment& s, Duration d) {
  closed_[index_of(s.state())] += d;
  if (s.generates_in_tail())
    generating_in_tails_ += d;
  if (s.busy != kNotBusy)
    return;
  const std::size_t reason = s.wait().reason;
  if (waits_.size() <= reason)
    waits_.resize(reason + 1);
  waits_[reason] += d;
}

CardTimeline::Segments::iterator CardTimeline::split(Time at) {
  const auto it = std::prev(segments_.upper_bound(at));
  if (it->first == at)
    return it;
  if (std::next(it) == segments_.end())
    account(it->second, at - it->first);  // The open segment is closed here.
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
      account(it->second, -(after->first - it->first));  // Becomes part of the open segment.
    segments_.erase(after);
  }
}

void CardTimeline::add_actor(std::size_t place) {
  const auto moved = [place](std::size_t& actor) {
    if (actor != kNobody && actor >= place)
      ++actor;
  };
  for (auto& [begin, s] : segments_) {
    const CardWait before = s.wait();  // Also if it turns out to be the next one that works.
    s.waits.insert(s.waits.begin() + static_cast<std::ptrdiff_t>(place), before);
    moved(s.by);
    moved(s.next);
  }
}

void CardTimeline::set_wait(Time at, std::size_t actor, CardWait wait) {
  const auto first = split(std::max(at, settled_));
  for (auto it = first; it != segments_.end(); ++it)
    alter(it, [&](Segment& s) { s.waits[actor] = wait; });
  join(first, Time::max());
}

void CardTimeline::set_tail(Time at, bool tail) {
  const auto first = split(std::max(at, settled_));
  for (auto it = first; it != segments_.end(); ++it)
    alter(it, [tail](Segment& s) { s.tail = tail; });
  join(first, Time::max());
}

void CardTimeline::add_span(std::size_t actor, const actors::Span& span) {
  const Time begin = std::max(span.begin, settled_);
  if (!is_span(span.state) || begin >= span.end)
    return;
  const auto first = split(begin);
  const auto last = split(span.end);
  for (auto it = first; it != last; ++it) {
    // If two actors are in the same state, the first place wins, so that the order of reports is
    // irrelevant.
    const bool taken = it->second.busy != kNotBusy;
    if ((taken && rank_of(it->second.busy) < rank_of(span.state)) ||
        (it->second.busy == span.state && it->second.by <= actor))
      continue;
    alter(it, [&](Segment& s) {
      s.busy = span.state;
      s.by = actor;
      s.next = kNobody;
    });
  }
  join(tell_next(first, last), span.end);
}

CardTimeline::Segments::iterator CardTimeline::tell_next(Segments::iterator from,
                                                         Segments::iterator to) {
  const auto worker = [](const Segment& s) { return s.works() ? s.by : s.next; };
  std::size_t next = worker(to->second);
  const Time begin = from->first;
  auto changed = to;
  for (auto it = to; it != segments_.begin();) {
    --it;
    if (it->second.works()) {
      if (it->first < begin)
        break;
      next = it->second.by;
    } else if (it->second.next != next) {
      alter(it, [next](Segment& s) { s.next = next; });
    } else if (it->first < begin) {
      break;
    }
    changed = it;
  }
  return changed;
}

/// Visits the corrections to the totals of the closed segments that give the totals over [0,
/// until].
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
    const std::size_t reason = s.wait().reason;
    if (waits.size() <= reason)
      waits.resize(reason + 1);
    waits[reason] += d;
  });
  return waits;
}

Duration CardTimeline::generating_in_tails(Time until) const {
  Duration time = generating_in_tails_;
  visit_difference(
      until, [&](const Segment& s, Duration d) { time += s.generates_in_tail() ? d : Duration{}; });
  return time;
}

void CardTimeline::follow(
    const Segment& s, Time begin, Time end, OpenWait& open, std::vector<LongestWait>& longest) {
  if (s.busy != kNotBusy) {
    open.reason = kNobody;
    return;
  }
  const CardWait& wait = s.wait();
  if (open.reason != wait.reason)
    open = {wait.reason, begin, wait.cause};
  if (longest.size() <= wait.reason)
    longest.resize(wait.reason + 1);
  if (end - open.begin > longest[wait.reason].duration)
    longest[wait.reason] = {end - open.begin, open.begin, open.cause};
}

std::vector<LongestWait> CardTimeline::longest_waits(Time until) const {
  std::vector<LongestWait> longest = longest_;
  OpenWait open = open_;
  for (auto it = segments_.begin(); it != segments_.end() && it->first < until; ++it)
    follow(it->second, it->first, std::min(until, end_of(it)), open, longest);
  return longest;
}

void CardTimeline::settle(Time before, const Sink& sink) {
  while (segments_.size() > 1 &&
         (end_of(segments_.begin()) <= before || segments_.size() > kMostSegments)) {
    const auto it = segments_.begin();
    if (sink)
      sink({it->first, end_of(it), it->second.state(), it->second.wait().reason});
    settled_ = end_of(it);
    follow(it->second, it->first, settled_, open_, longest_);
    segments_.erase(it);
  }
}

void CardTimeline::finish(Time end, const Sink& sink) {
  for (auto it = segments_.begin(); it != segments_.end() && it->first < end; ++it) {
    if (sink)
      sink({it->first, std::min(end, end_of(it)), it->second.state(), it->second.wait().reason});
  }
}

}  // namespace temper::orchestrator
