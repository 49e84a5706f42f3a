// A time line with events in nanoseconds.
#pragma once

#include "orchestrator/metrics/timeline.hpp"
#include "orchestrator/scheduler/state/config.hpp"

namespace temper::orchestrator {

inline Time at_ns(std::int64_t ns) {
  return Time(Duration(ns));
}

/// rollout-0 on card 0; trainer-0 and reward-0 on card 1.
inline SchedulerConfig two_cards() {
  SchedulerConfig c;
  c.actors = {{"rollout-0", actors::RoleKind::Rollout, {CardId(0)}, 4},
              {"reward-0", actors::RoleKind::Reward, {CardId(1)}, 0},
              {"trainer-0", actors::RoleKind::Trainer, {CardId(1)}, 0}};
  return c;
}
inline constexpr ActorId kRollout(0), kReward(1), kTrainer(2);

class TimelineFeed {
 public:
  explicit TimelineFeed(const SchedulerConfig& config = two_cards()) {
    event(0, event::Started{config});
  }
  void event(std::int64_t ns, Event e, Commands commands = {}) {
    timeline.feed({sequence_++, at_ns(ns), std::move(e), std::move(commands)});
  }
  void wait(std::int64_t ns, ActorId actor, actors::CardState state, WaitCause cause = {}) {
    event(ns, event::DeadlineReached{}, {command::Waiting{actor, state, cause}});
  }
  void busy(std::int64_t ns, ActorId actor, std::vector<actors::Span> spans) {
    event(ns, event::Activity{actor, std::move(spans)});
  }
  std::int64_t ns(std::size_t card, actors::CardState state, std::int64_t until) const {
    return timeline.totals(card, at_ns(until))[index_of(state)].count();
  }
  Timeline timeline;

 private:
  std::uint64_t sequence_ = 0;
};

inline std::int64_t sum(const StateTimes& times) {
  Duration d{};
  for (const Duration t : times)
    d += t;
  return d.count();
}

}  // namespace temper::orchestrator
