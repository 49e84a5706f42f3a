// Launches, losses and restarts of actors (docs/explanation/failures.md, section 4.1). A lost actor
// is launched again: at once the first time, then after a pause that doubles, and only so many
// start at the same time. All of it follows from the events and their times, so that a replay
// repeats it.
#pragma once

#include "orchestrator/scheduler/state/events.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

namespace temper::orchestrator {

class Lifecycle {
 public:
  // --- Events
  /// The run starts, or continues after so many rollbacks in a row: every actor is to be launched.
  void launch_all(RunState& run, std::int32_t rollbacks);
  void on_ready(RunState& run, const event::ActorReady& e);
  void on_down(RunState& run, const event::ActorDown& e);
  /// Extends the deadline of its start, within a limit.
  void on_loading(RunState& run, const event::ActorLoading& e) const;
  /// A checkpoint was reached: earlier restarts no longer count against actors that are ready. One
  /// that never starts is not forgiven.
  void on_checkpoint(RunState& run);

  // --- Moves
  /// Launches the actors whose pause is over, as far as there is room.
  void start_waiting(RunState& run) const;
  /// Acts on every deadline that has passed.
  void expire(RunState& run);
  /// The actor is lost: its work is revoked, and it is launched again unless it was lost too often.
  /// Losing the trainer rolls the run back to the last checkpoint.
  void lose(RunState& run, ActorId actor, Reason reason);

  /// Whether to post ActorLoading: the actor is starting, and its deadline is near enough to be
  /// worth a record and can be moved.
  bool wants_to_know_that_loads(const RunState& run, ActorId actor, Time now) const;

 private:
  void lose_trainer(RunState& run, Reason reason);
  bool is_first_start(const RunState& run, ActorId actor) const;

  std::int32_t rollbacks_ = 0;  ///< In a row, since the last checkpoint.
};

}  // namespace temper::orchestrator
