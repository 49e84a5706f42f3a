// The exclusive state of one card over time, as an interval map with two layers: the waits of the
// actors on the card, and above them the busy spans of the card. Busy spans may be added late and
// in any order; where they overlap, the more important state wins. While no actor is busy, the card
// shows the wait of the actor that works next; if there is none yet, that of the first actor that
// is not down. Totals are updated incrementally in integer nanoseconds, so that the states of a
// card always partition the time exactly.
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
/// The six states in which a card works for the run.
constexpr bool is_busy(actors::CardState s) {
  return s <= actors::CardState::Reward || s == actors::CardState::Evaluate;
}
/// Whether the state is reported as a span, not as a wait.
constexpr bool is_span(actors::CardState s) {
  return s <= actors::CardState::Switch || s == actors::CardState::Evaluate ||
         s == actors::CardState::WaitTools;
}
/// When several actors share a card, the state of the lowest rank is shown.
constexpr std::size_t rank_of(actors::CardState s) {
  using S = actors::CardState;
  return s == S::Evaluate    ? 2 * index_of(S::Reward) + 1
         : s == S::WaitTools ? 2 * index_of(S::Switch) + 1
                             : 2 * index_of(s);
}

using StateTimes = std::array<Duration, kCardStates>;

/// What a card waits for: a state, and an index into a table of reasons that the owner keeps.
struct CardWait {
  actors::CardState state = actors::CardState::Down;
  std::size_t reason = 0;
  WaitCause cause{};  ///< With its instance, as at the beginning of the wait.
  /// Waits for one reason are the same wait, whatever their instances.
  bool operator==(const CardWait& other) const {
    return state == other.state && reason == other.reason;
  }
};

/// The longest uninterrupted wait of a card for one reason.
struct LongestWait {
  Duration duration{};
  Time at{};
  WaitCause cause{};
};

/// A segment of a time line in one state; `reason` is valid if the state is a wait.
struct CardSlice {
  Time begin{}, end{};
  actors::CardState state = actors::CardState::Down;
  std::size_t reason = 0;
};

class CardTimeline {
 public:
  using Sink = std::function<void(const CardSlice&)>;

  /// The initial wait of each actor on the card, in the order in which they are shown while none is
  /// known to work next. Requires: at least one.
  explicit CardTimeline(std::vector<CardWait> initial) {
    segments_[Time{}] = {std::move(initial), kNotBusy, kNobody, kNobody};
  }

  /// Inserts an actor at this place; those from there on move up. The past of the card does not
  /// change. Requires: place <= actors.
  void add_actor(std::size_t place);
  /// From `at` on, the actor at this place has this wait whenever it is not busy.
  void set_wait(Time at, std::size_t actor, CardWait wait);
  /// From `at` on, the run is in the tail of a batch (batch_tail.hpp), or no longer.
  void set_tail(Time at, bool tail);
  /// The actor at this place was busy in this span. Ignores spans of wait states, and parts before
  /// settled().
  void add_span(std::size_t actor, const actors::Span& span);

  /// Time per state over [0, until]; sums to `until` exactly. Settled parts always count in full,
  /// so the result is that of max(until, settled()).
  StateTimes totals(Time until) const;
  /// Waiting time per reason over [0, until], as above. Shorter than the table of reasons if the
  /// last ones never occurred.
  std::vector<Duration> waits(Time until) const;
  /// Time in prefill or decode during tails over [0, until], as above.
  Duration generating_in_tails(Time until) const;
  /// The longest wait per reason over [0, until], as above. None exceeds waits().
  std::vector<LongestWait> longest_waits(Time until) const;

  /// Limit of the segments with details, however late a span may arrive.
  static constexpr std::size_t kMostSegments = 8192;
  /// Drops the details before `before`, and all but the latest kMostSegments: passes every finished
  /// segment to `sink`, in order.
  void settle(Time before, const Sink& sink);
  /// Passes the rest up to `end` to the sink, cut there. The time line cannot be used afterwards.
  void finish(Time end, const Sink& sink);
  Time settled() const { return settled_; }

 private:
  static constexpr auto kNotBusy = static_cast<actors::CardState>(kCardStates);
  static constexpr auto kNobody = std::numeric_limits<std::size_t>::max();
  struct Segment {
    std::vector<CardWait> waits;  ///< One per actor.
    actors::CardState busy = kNotBusy;
    std::size_t by = kNobody;    ///< The busy actor.
    std::size_t next = kNobody;  ///< The actor that works next, if none is busy.
    bool tail = false;
    bool operator==(const Segment&) const = default;
    bool works() const { return busy != kNotBusy && is_busy(busy); }
    bool generates_in_tail() const {
      return tail && (busy == actors::CardState::Prefill || busy == actors::CardState::Decode);
    }
    const CardWait& wait() const;
    actors::CardState state() const { return busy == kNotBusy ? wait().state : busy; }
  };
  using Segments = std::map<Time, Segment>;

  Time end_of(Segments::const_iterator it) const;
  Segments::iterator split(Time at);
  /// Merges equal neighbors, from the one before `from` up to and including `to`.
  void join(Segments::iterator from, Time to);
  void account(const Segment& s, Duration d);
  /// Calls change(segment) and updates the totals accordingly.
  template <class Change>
  void alter(Segments::iterator it, Change&& change) {
    const Time end = end_of(it);
    const Duration length = end == Time::max() ? Duration{} : end - it->first;
    account(it->second, -length);
    change(it->second);
    account(it->second, length);
  }
  /// Records which actor works next in the segments of [from, to), and in earlier ones back to the
  /// last work. Returns the first segment that changed.
  Segments::iterator tell_next(Segments::iterator from, Segments::iterator to);
  template <class Visit>
  void visit_difference(Time until, Visit&& visit) const;
  /// The current wait at some time; if there is none, the reason is kNobody.
  struct OpenWait {
    std::size_t reason = kNobody;
    Time begin{};
    WaitCause cause{};
  };
  /// Extends the open wait to `end` through a segment that begins where the previous one ended.
  static void follow(
      const Segment& s, Time begin, Time end, OpenWait& open, std::vector<LongestWait>& longest);

  Segments segments_;                 ///< By their begin; the last one is open.
  Time settled_{};                    ///< Begin of the first segment.
  StateTimes closed_{};               ///< Sum over all settled and closed segments.
  std::vector<Duration> waits_;       ///< The same per reason.
  Duration generating_in_tails_{};    ///< The same of prefill and decode in tails.
  OpenWait open_;                     ///< At settled_.
  std::vector<LongestWait> longest_;  ///< Per reason, up to settled_.
};

}  // namespace temper::orchestrator
