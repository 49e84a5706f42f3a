// What every card of a run did, from its records: an exclusive state per card and instant
// (docs/explanation/measures.md, section 5.1), and the reason of each wait.
//
// Assumptions. Cards that always had the same actors are in the same state and share one line.
// At each instant a card shows
//   1. the most important busy span (event::Activity) of any actor on it, in the order of
//      actors::CardState; the part of decode, prefill and reward that was for an evaluation is
//      `evaluate` (evaluation_time.hpp)
//   2. if there is none, the wait (command::Waiting) of the actor that works next: the one whose
//      work (the six busy states) the card shows first after this instant. If none works any more,
//      or none has yet, the wait of the first actor that is not down, in the order trainer,
//      rollout, reference, reward; `down` if all are
// An actor occupies all cards of its ActorSpec, unless it was given those of some engines
// (Switch::cards_of): then it works on these alone.
// The actors of a run may change. A removed actor keeps its place on the lines of its cards, down;
// a new actor does not change the past of its cards, and a new card was down before.
// An actor is down from Launch, ActorDown or Resumed until the next Waiting. Spans may be reported
// late, but at most kGrace after the longest deadline of the run, at most kMostLate (deadlines in
// virtual time are long), and at most CardTimeline::kMostSegments state changes of a card; parts
// that are later are ignored.
// In the tail of a batch, a trainer without groups, an engine that the staleness bound throttles,
// and a reference or verifier without responses wait for the last responses (WaitReason::tail).
// Invariant. The states of a card sum to the requested time, to the nanosecond.
#pragma once

#include "orchestrator/metrics/batch_tail.hpp"
#include "orchestrator/metrics/card_timeline.hpp"
#include "orchestrator/metrics/evaluation_time.hpp"
#include "orchestrator/record/event_log.hpp"

#include <optional>
#include <set>
#include <tuple>

namespace temper::orchestrator {

/// The reason of a card's wait.
struct WaitReason {
  actors::RoleKind role = actors::RoleKind::Rollout;  ///< Role of the actor that determines it.
  actors::CardState state = actors::CardState::Down;
  WaitCause cause{};  ///< Without its instance.
  bool tail = false;  ///< It ends with the tail of a batch (batch_tail.hpp), which is the reason.
  auto operator<=>(const WaitReason&) const = default;
};

/// Card time lost for one reason, and the longest such wait of one card.
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
  /// Number of records after which details are settled at the latest.
  static constexpr std::uint64_t kSettleRecords = 4096;

  /// Largest delay of spans in virtual time.
  static Duration horizon_of(const SchedulerConfig& config);

  /// Call for every record, in order.
  void feed(const Record& record);

  /// All cards, sorted. Empty before Started.
  const std::vector<CardId>& cards() const { return cards_; }
  /// States of the card at this index of cards(); they sum to `until` exactly.
  StateTimes totals(std::size_t card, Time until) const {
    return lines_[line_of_[card]].totals(until);
  }
  /// The cards of each line, ascending. Lines are sorted by their first card; lines that were split
  /// off later follow.
  const std::vector<std::vector<CardId>>& lines() const { return cards_on_; }
  /// Index in lines() of the card at this index of cards().
  std::size_t line_of(std::size_t card) const { return line_of_[card]; }
  /// Sums over all cards; together cards().size() * until.
  StateTimes totals(Time until) const;
  /// Time in which no card generated or trained.
  Duration without_generation_or_training(Time until) const;
  /// Longest total first; together the wait states of all cards.
  std::vector<WaitTotal> waits(Time until) const;
  const WaitReason& reason(std::size_t index) const { return reasons_[index]; }
  const BatchTail& tail() const { return tail_; }
  /// Card time of prefill and decode in tails of batches.
  Duration generating_in_tails(Time until) const;

  /// Receives every segment of every line, named by its first card, once it is final; in order for
  /// each line.
  void set_sink(Sink sink) { sink_ = std::move(sink); }
  /// Passes the rest up to `end` to the sink.
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
  /// A line, and the place of an actor on it.
  struct Place {
    std::size_t line = 0, place = 0;
  };
  std::vector<std::vector<Place>> places_of_;        ///< Actor -> its lines.
  std::vector<std::set<std::size_t>> given_;         ///< Actor -> its current lines; empty: all.
  std::vector<std::vector<std::size_t>> actors_on_;  ///< Line -> actors, by priority of their role.
  std::vector<std::vector<CardId>> cards_on_;        ///< Line -> its cards.
  std::vector<std::size_t> line_of_;                 ///< Index in cards_ -> line.
  Duration horizon_{};
  Sink sink_;

  std::vector<CardId> cards_;
  std::vector<CardTimeline> lines_;
  EvaluationTime evaluation_;
  BatchTail tail_;
  /// Busy while any card generates or trains.
  std::optional<CardTimeline> progress_;
  std::vector<ActorWait> waits_;
  std::vector<WaitReason> reasons_;
  std::map<WaitReason, std::size_t> reason_index_;
  Time next_settle_{};
  std::uint64_t unsettled_records_ = 0;
};

}  // namespace temper::orchestrator
