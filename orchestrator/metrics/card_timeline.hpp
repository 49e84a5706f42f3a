// The exclusive state of one card over time, as an interval map: below, what each actor on the card
// waits for; above, what the card was busy with. Busy spans may be added late and in any order; the
// more important state wins where they overlap. Where no actor is busy the card shows the wait of
// the actor that works next; as long as none has, of the first actor that is not down. Totals are
// kept up to date in integer nanoseconds, so that the states of a card always partition the time
// exactly.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "orchestrator/scheduler/state/facts.hpp"

#include <array>
#include <functional>
#include <limits>
#include <map>
#include <vector>

namespace temper::orchestrator {

inline constexpr std::size_t kCardStates = EnumNames<actors::CardState>::value.size();
constexpr std::size_t index_of(actors::CardState s) {
  return static_cast<std::size_t>(s);
}
/// The six states in which a card does the work of the run.
constexpr bool is_busy(actors::CardState s) {
  return s <= actors::CardState::Reward || s == actors::CardState::Evaluate;
}
/// Reported as a span of time, not as a wait.
constexpr bool is_span(actors::CardState s) {
  return s <= actors::CardState::Switch || s == actors::CardState::Evaluate;
}
/// The state of the lowest rank is shown where several actors share a card.
constexpr std::size_t rank_of(actors::CardState s) {
  return s == actors::CardState::Evaluate ? 2 * index_of(actors::CardState::Reward) + 1
                                          : 2 * index_of(s);
}

using StateTimes = std::array<Duration, kCardStates>;

/// What a card waits for: a state, and an index into a table of reasons kept by the owner.
struct CardWait {
  actors::CardState state = actors::CardState::Down;
  std::size_t reason = 0;
  WaitCause cause{};  ///< In full, as of its begin.
  /// Waits of one reason are one wait, whatever each is for.
  bool operator==(const CardWait& other) const {
    return state == other.state && reason == other.reason;
  }
};

/// A wait of a card for one reason that nothing interrupted.
struct LongestWait {
  Duration duration{};
  Time at{};
  WaitCause cause{};
};

/// A stretch of a time line in one state; `reason` holds where the state is a wait.
struct CardSlice {
  Time begin{}, end{};
  actors::CardState state = actors::CardState::Down;
  std::size_t reason = 0;
};

class CardTimeline {
 public:
  using Sink = std::function<void(const CardSlice&)>;

  /// The wait of each actor on the card, in the order in which they are shown while none is known
  /// to work next. Requires: at least one.
  explicit CardTimeline(std::vector<CardWait> initial) {
    segments_[Time{}] = {std::move(initial), kNotBusy, kNobody, kNobody};
  }

  /// One more actor at this place; those from there on move up. Until now the card shows the same
  /// as without it. Requires: place <= actors.
  void add_actor(std::size_t place);
  /// From `at` on the actor at this place waits like this where it is not busy.
  void set_wait(Time at, std::size_t actor, CardWait wait);
  /// The actor at this place did this. Spans of wait states and parts before settled() are ignored.
  void add_span(std::size_t actor, const actors::Span& span);

  /// Times per state over [0, until]; they sum to `until` exactly. Parts that are settled count
  /// whole, so the answer is that of max(until, settled()).
  StateTimes totals(Time until) const;
  /// Waiting time per reason over [0, until], as above; shorter than the table of reasons if the
  /// last ones never occurred.
  std::vector<Duration> waits(Time until) const;
  /// The longest wait per reason over [0, until], as above. None is longer than its waits().
  std::vector<LongestWait> longest_waits(Time until) const;

  /// Of how many stretches the details are kept, however late a span may come.
  static constexpr std::size_t kMostSegments = 8192;
  /// Forgets the details before `before`, and all but the latest kMostSegments: hands every
  /// finished stretch to `sink`, in order.
  void settle(Time before, const Sink& sink);
  /// Hands over the rest up to `end`, cutting there. The time line is not to be used afterwards.
  void finish(Time end, const Sink& sink);
  Time settled() const { return settled_; }

 private:
  static constexpr auto kNotBusy = static_cast<actors::CardState>(kCardStates);
  static constexpr auto kNobody = std::numeric_limits<std::size_t>::max();
  struct Segment {
    std::vector<CardWait> waits;  ///< By actor.
    actors::CardState busy = kNotBusy;
    std::size_t by = kNobody;    ///< Who is busy.
    std::size_t next = kNobody;  ///< Who works next, where nobody works.
    bool operator==(const Segment&) const = default;
    bool works() const { return busy != kNotBusy && is_busy(busy); }
    const CardWait& wait() const;
    actors::CardState state() const { return busy == kNotBusy ? wait().state : busy; }
  };
  using Segments = std::map<Time, Segment>;

  Time end_of(Segments::const_iterator it) const;
  Segments::iterator split(Time at);
  /// Joins equal neighbours from the one before `from` up to and including `to`.
  void join(Segments::iterator from, Time to);
  void account(const Segment& s, Duration d);
  /// Calls change(segment) with its time taken out of the totals before and put back after.
  template <class Change>
  void alter(Segments::iterator it, Change&& change) {
    const Time end = end_of(it);
    const Duration length = end == Time::max() ? Duration{} : end - it->first;
    account(it->second, -length);
    change(it->second);
    account(it->second, length);
  }
  /// Tells the segments in [from, to), and those before them up to the last work, who works next.
  /// Returns the first one that it changed.
  Segments::iterator tell_next(Segments::iterator from, Segments::iterator to);
  template <class Visit>
  void visit_difference(Time until, Visit&& visit) const;
  /// The wait that goes on at some time; of none the reason is kNobody.
  struct OpenWait {
    std::size_t reason = kNobody;
    Time begin{};
    WaitCause cause{};
  };
  /// Goes on to `end` through a segment that begins where the one before ended.
  static void follow(
      const Segment& s, Time begin, Time end, OpenWait& open, std::vector<LongestWait>& longest);

  Segments segments_;                 ///< By begin; the last one is open.
  Time settled_{};                    ///< Begin of the first segment.
  StateTimes closed_{};               ///< Over all settled and all closed segments.
  std::vector<Duration> waits_;       ///< The same per reason.
  OpenWait open_;                     ///< At settled_.
  std::vector<LongestWait> longest_;  ///< Per reason, until settled_.
};

}  // namespace temper::orchestrator
