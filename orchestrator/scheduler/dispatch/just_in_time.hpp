// When a group is dispatched that the staleness rule admits: not before the trainer needs it, so
// that it begins under the newest weights that leave it time enough (`staleness.admission:
// just_in_time`).
//
// Rule.      n groups are outstanding and not in training, so one that is dispatched now is trained
//            n / B (rounded down) updates after the next. It is dispatched once
//              now >= start of the next update + (n / B) * period - latency - margin
//            start:   when the update under way ends at the present pace; now, where none is
//            period:  seconds of an update at work, over the last updates
//            latency: from dispatch until a group is trainable, not exceeded by kShare of the last
//                     kWindow batches of groups: generation, reward and scores, with their spread
//            margin:  grows by the time that the trainer waited although groups were held back,
//                     shrinks by kDecay of a period with each update that did not wait
//            As long as a batch of latencies or an update is unknown, every group is dispatched at
//            once.
// Effect.    It only delays, so what the staleness rule guarantees holds unchanged.
// Range.     For engines whose cards are their own: where cards take turns, their turns decide.
//            Where generation is the limit, latency exceeds every start and nothing is delayed.
// Source.    Our own. All of it follows from events and their times, so a replay decides the same.
#pragma once

#include "core/ids.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace temper::orchestrator {

class JustInTime {
 public:
  static constexpr double kShare = 0.95;
  static constexpr std::size_t kWindow = 2;  ///< Batches.
  static constexpr double kDecay = 0.005;
  static constexpr double kPaceWeight = 0.3;  ///< Of the last update in the period.

  JustInTime() = default;
  /// Groups of an update.
  explicit JustInTime(std::int32_t batch) : batch_(batch) {}

  // --- What happens
  void dispatched(GroupId group, Time now) { began_[group] = now; }
  /// Everything of it is there.
  void trainable(GroupId group, Time now);
  /// It leaves the run.
  void leaves(GroupId group) { began_.erase(group); }
  void update_begins(Time now);
  void update_ends(Time now);
  void update_canceled(Time now);
  /// A group that the rule admits was held back.
  void held_back() { held_ = true; }

  /// When one more group is to be dispatched, with `ahead` groups outstanding and not in training.
  /// In the past, or nullopt: at once. Time::max(): not before the next event, since the next
  /// update is expected to begin now, however late it becomes.
  std::optional<Time> due(std::int64_t ahead, Time now) const;

  // --- What was learned
  std::optional<Duration> period() const { return period_; }
  std::optional<Duration> latency() const { return latency_; }
  Duration margin() const { return margin_; }

 private:
  void learn_latency();

  std::int32_t batch_ = 1;
  std::map<GroupId, Time> began_;
  std::deque<Duration> latencies_;
  std::optional<Duration> latency_;  ///< As of the last update.
  std::optional<Duration> period_;
  Duration margin_{};
  std::optional<Time> training_since_;
  std::optional<Time> waits_since_;  ///< The trainer, since the last update.
  bool held_ = false;                ///< Since the last update began.
};

}  // namespace temper::orchestrator
