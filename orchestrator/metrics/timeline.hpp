// What every card of a run did, from its records: an exclusive state per card and instant
// (docs/semantics.md, section 5.1), and what each wait was for.
//
// Assumptions. Cards that always had the same actors do the same at all times and share one line.
// At each instant a card shows
//   1. the most important busy span (event::Activity) of any actor on it, in the order of
//      actors::CardState; where there is none
//      (of decode, prefill and reward the part that was for an evaluation is `evaluate`:
//      evaluation_time.hpp)
//   2. the wait (command::Waiting) of that one of its actors that works next: the one whose work
//      (the six busy states) the card shows first after this instant. Where none works any more,
//      or has not yet, the wait of the first actor that is not down, in the order trainer, rollout,
//      reference, reward; `down` where all are.
// An actor occupies all cards of its ActorSpec, but one that was given those of some engines
// (Switch::cards_of) works on these alone from then on.
// A run may go on with other actors. Who is away keeps its place on the lines of its cards, down;
// before one came its cards show what they did without it, and a card that the run did not have was
// down.
// An actor is down from Launch, ActorDown or Resumed until the next Waiting says otherwise. Spans
// may be reported late, but not later than kGrace after the longest deadline of the run, nor than
// kMostLate (deadlines in virtual time are long), nor than CardTimeline::kMostSegments changes of
// the state of a card; parts beyond that are ignored.
// Invariant. The states of a card sum to the time asked for, to the nanosecond.
#pragma once

#include "orchestrator/metrics/card_timeline.hpp"
#include "orchestrator/metrics/evaluation_time.hpp"
#include "orchestrator/record/event_log.hpp"

#include <optional>
#include <set>
#include <tuple>

namespace temper::orchestrator {

/// Why a card waited.
struct WaitReason {
  actors::RoleKind role = actors::RoleKind::Rollout;  ///< Of the actor that determined the wait.
  actors::CardState state = actors::CardState::Down;
  WaitCause cause{};  ///< Without its instance.
  auto operator<=>(const WaitReason&) const = default;
};

/// Card time lost to one reason, and the longest wait of one card for it.
struct WaitTotal {
  WaitReason reason;
  Duration card_time{};
  Duration longest{};
  Time longest_at{};
  WaitCause longest_cause{};  ///< With its instance.
};

class Timeline {
 public:
  using Sink = std::function<void(CardId, const CardSlice&)>;
  static constexpr Duration kGrace = std::chrono::seconds(30);
  static constexpr Duration kMostLate = std::chrono::hours(6);
  /// The details are looked through after so many records at the latest.
  static constexpr std::uint64_t kSettleRecords = 4096;

  /// How late spans of such a run may be told.
  static Duration horizon_of(const SchedulerConfig& config);

  /// To be called for every record, in order.
  void feed(const Record& record);

  /// Sorted. Empty before Started.
  const std::vector<CardId>& cards() const { return cards_; }
  /// Of the card at this place of cards(); they sum to `until` exactly.
  StateTimes totals(std::size_t card, Time until) const {
    return lines_[line_of_[card]].totals(until);
  }
  /// The cards of each line, ascending; lines by their first card, those that were split off later
  /// behind them.
  const std::vector<std::vector<CardId>>& lines() const { return cards_on_; }
  /// The place in lines() of the card at this place of cards().
  std::size_t line_of(std::size_t card) const { return line_of_[card]; }
  /// Over all cards; they sum to cards().size() * until.
  StateTimes totals(Time until) const;
  /// Time in which no card generated or trained.
  Duration without_generation_or_training(Time until) const;
  /// Longest card time first; they sum to the wait states of all cards.
  std::vector<WaitTotal> waits(Time until) const;
  const WaitReason& reason(std::size_t index) const { return reasons_[index]; }

  /// Is given every stretch of every line, named by its first card, once nothing can change it any
  /// more; in order per line.
  void set_sink(Sink sink) { sink_ = std::move(sink); }
  /// Hands the rest up to `end` to the sink.
  void finish(Time end);

 private:
  struct ActorWait {
    actors::CardState state = actors::CardState::Down;
    std::size_t reason = 0;
    WaitCause cause{};
  };

  void take(const SchedulerConfig& config, Time now);
  void take_actors(const std::vector<ActorSpec>& actors, Time now);
  void add_spans(ActorId actor, const std::vector<actors::Span>& spans);
  void set_wait(ActorId actor, actors::CardState state, const WaitCause& cause, Time now);
  using OnCard = std::vector<std::size_t>;  ///< Actors, ascending.
  std::vector<OnCard> assign_lines();
  std::size_t add_line(std::optional<std::size_t> split_from);
  void fill_line(std::size_t line, const OnCard& here, Time now);
  void give_cards(ActorId actor, const std::vector<ActorId>& engines);
  bool works_on(ActorId actor, std::size_t line) const {
    const auto& lines = given_[actor.value()];
    return lines.empty() || lines.contains(line);
  }
  std::size_t intern(const WaitReason& reason);
  CardTimeline::Sink sink_of(std::size_t line) const;

  std::vector<ActorSpec> actors_;
  /// A line, and an actor's place on it.
  struct Place {
    std::size_t line = 0, place = 0;
  };
  std::vector<std::vector<Place>> places_of_;        ///< Actor -> its lines.
  std::vector<std::set<std::size_t>> given_;         ///< Actor -> its lines for now; empty: all.
  std::vector<std::vector<std::size_t>> actors_on_;  ///< Line -> actors, most telling role first.
  std::vector<std::vector<CardId>> cards_on_;        ///< Line -> its cards.
  std::vector<std::size_t> line_of_;                 ///< Place in cards_ -> line.
  Duration horizon_{};
  Sink sink_;

  std::vector<CardId> cards_;
  std::vector<CardTimeline> lines_;
  EvaluationTime evaluation_;
  /// Busy where any card generates or trains.
  std::optional<CardTimeline> progress_;
  std::vector<ActorWait> waits_;
  std::vector<WaitReason> reasons_;
  std::map<WaitReason, std::size_t> reason_index_;
  Time next_settle_{};
  std::uint64_t unsettled_records_ = 0;
};

}  // namespace temper::orchestrator
