// The exclusive state of one card over time, as an interval map: below, what the card waits for;
// above, what it was busy with. Busy spans may be added late and in any order; the more important
// state wins where they overlap. Totals are kept up to date in integer nanoseconds, so that the
// states of a card always partition the time exactly.
#pragma once

#include "actors/protocol/lifecycle.hpp"

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
/// The five states in which a card does the work of the run.
constexpr bool is_busy(actors::CardState s) {
  return s <= actors::CardState::Reward;
}

using StateTimes = std::array<Duration, kCardStates>;

/// What a card waits for: a state, and an index into a table of reasons kept by the owner.
struct CardWait {
  actors::CardState state = actors::CardState::Down;
  std::size_t reason = 0;
  bool operator==(const CardWait&) const = default;
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

  explicit CardTimeline(CardWait initial) { segments_[Time{}] = {initial, kNotBusy}; }

  /// From `at` on the card waits like this where it is not busy.
  void set_wait(Time at, CardWait wait);
  /// The card did this. Spans of wait states and parts before settled() are ignored.
  void add_span(const actors::Span& span);

  /// Times per state over [0, until]; they sum to `until` exactly. Parts that are settled count
  /// whole, so the answer is that of max(until, settled()).
  StateTimes totals(Time until) const;
  /// Waiting time per reason over [0, until], as above; shorter than the table of reasons if the
  /// last ones never occurred.
  std::vector<Duration> waits(Time until) const;

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
  struct Segment {
    CardWait wait;
    actors::CardState busy = kNotBusy;
    bool operator==(const Segment&) const = default;
    actors::CardState state() const { return busy == kNotBusy ? wait.state : busy; }
  };
  using Segments = std::map<Time, Segment>;

  Time end_of(Segments::const_iterator it) const;
  Segments::iterator split(Time at);
  /// Joins equal neighbours from the one before `from` up to and including `to`.
  void join(Segments::iterator from, Time to);
  void account(const Segment& s, Duration d);
  template <class Visit>
  void visit_difference(Time until, Visit&& visit) const;

  Segments segments_;            ///< By begin; the last one is open.
  Time settled_{};               ///< Begin of the first segment.
  StateTimes closed_{};          ///< Over all settled and all closed segments.
  std::vector<Duration> waits_;  ///< The same per reason.
};

}  // namespace temper::orchestrator
