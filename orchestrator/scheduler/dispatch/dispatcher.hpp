// Sends groups to rollout engines: new ones that the staleness rule admits, responses that lost
// their engine, and responses that move from a loaded engine to an idle one. Nothing here moves a
// deadline.
#pragma once

#include "orchestrator/scheduler/dispatch/just_in_time.hpp"
#include "orchestrator/scheduler/dispatch/length_forecast.hpp"
#include "orchestrator/scheduler/sharing/card_sharing.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

namespace temper::orchestrator {

class Dispatcher {
 public:
  Dispatcher() = default;
  explicit Dispatcher(const SchedulerConfig& config) : just_in_time_(config.groups_per_update) {}

  // --- What happened
  /// A response has ended at this length.
  void response_ended(Tokens length) { forecast_.ended(length); }
  /// The group may have become trainable.
  void group_changed(const RunState& run, GroupId group);
  void group_left(GroupId group) { just_in_time_.leaves(group); }
  void step_begins(Time now) { just_in_time_.update_begins(now); }
  void step_ends(Time now) { just_in_time_.update_ends(now); }
  /// The step that began has not been trained.
  void step_canceled(Time now) { just_in_time_.update_canceled(now); }

  // --- Moves
  /// Responses that lost their engine or were interrupted.
  void dispatch_returned(RunState& run, const CardSharing& sharing) const;
  /// Sets RunState::held_until.
  void dispatch_new(RunState& run, const CardSharing& sharing);
  /// Of the responses that the next step waits for, some of the most loaded engine's are requested
  /// back for the least loaded, so that both are equally loaded.
  void migrate(RunState& run, const CardSharing& sharing) const;

 private:
  bool dispatch_one(RunState& run, const CardSharing& sharing);
  bool may_wait(RunState& run);
  std::vector<ResponseId> longest_generating(const RunState& run,
                                             ActorId engine,
                                             PolicyVersion newest) const;

  JustInTime just_in_time_;
  LengthForecast forecast_;
};

}  // namespace temper::orchestrator
