// The scheduler decides what happens next in a run. It is a pure, deterministic state machine: it
// touches no socket, clock, thread or file. Whatever happens enters as an event with its time, and
// decisions leave as commands. The same events give the same commands, so a run can be replayed.
//
// Its parts own their state and see what they share as RunState. After each event they act in a
// fixed order (move_everything()). Every wait has a deadline, kept by the fleet (launch, weights,
// switch), the queue (leases) or the run (checkpoint, drain); next_deadline() is the earliest.
#pragma once

#include "orchestrator/scheduler/dispatch/dispatcher.hpp"
#include "orchestrator/scheduler/evaluations/evaluations.hpp"
#include "orchestrator/scheduler/lifecycle/lifecycle.hpp"
#include "orchestrator/scheduler/results/results.hpp"
#include "orchestrator/scheduler/sharing/card_sharing.hpp"
#include "orchestrator/scheduler/state/commands.hpp"
#include "orchestrator/scheduler/state/events.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"
#include "orchestrator/scheduler/view/claims.hpp"

namespace temper::orchestrator {

class Scheduler {
 public:
  /// Requires: the first event is Started or Resumed; then time never decreases.
  Commands on(const Event& event, Time now);
  /// When on(DeadlineReached) is due if nothing else happens.
  std::optional<Time> next_deadline() const;

  // --- Checks of messages (view/claims.hpp). Only a message that passes may go to on().
  actors::Stage stage_of(ActorId actor) const { return orchestrator::stage_of(run_, actor); }
  bool may_say(ActorId actor, std::uint32_t tag) const;
  std::optional<InvalidClaim> find_invalid_claim(const Event& reported, Time now) const {
    return orchestrator::find_invalid_claim(run_, reported, now);
  }
  std::optional<InvalidClaim> find_invalid_claim(ActorId engine,
                                                 const event::Generated::Item& item) const {
    return orchestrator::find_invalid_claim(run_, engine, item);
  }

  /// All that outlives a checkpoint: queue, groups outstanding, counters. Leases and actors do not.
  std::string snapshot() const;
  /// A scheduler as it was when the snapshot was taken (empty: at the start of the run), without
  /// actors or leases. To be followed by on(Resumed). Error: the snapshot is damaged, or of a run
  /// with another configuration.
  static Result<Scheduler> restored(const SchedulerConfig& config, std::string_view snapshot);

  const RunState& state() const { return run_; }
  const SchedulerConfig& config() const { return run_.config; }
  const Progress& progress() const { return run_.saved.progress; }
  const DistQueue& queue() const { return run_.saved.queue; }
  /// The table that grants this lease: that of training, or that of the evaluation in progress.
  const DistQueue& table_of(LeaseId lease) const { return run_.table_of(lease); }
  const Evaluation& evaluation() const { return run_.evaluation; }
  /// What the actor was given and has not answered, in both tables.
  Load load_of(ActorId actor) const { return run_.load_of(actor); }
  const Fleet& fleet() const { return run_.fleet; }
  /// Whether to post ActorLoading (lifecycle.hpp).
  bool wants_to_know_that_loads(ActorId actor, Time now) const {
    return lifecycle_.wants_to_know_that_loads(run_, actor, now);
  }
  SwitchPhase phase() const { return sharing_.phase(); }
  bool finished() const { return run_.finished; }

 private:
  void handle(const event::Started& e);
  void handle(const event::Resumed& e);
  void handle(const event::ActorReady& e) { lifecycle_.on_ready(run_, e); }
  void handle(const event::ActorDown& e) { lifecycle_.on_down(run_, e); }
  void handle(const event::ActorLoading& e) { lifecycle_.on_loading(run_, e); }
  void handle(const event::Generated& e) { on_generated(run_, learners(), e); }
  void handle(const event::ReferenceScored& e) { on_scored(run_, learners(), e); }
  void handle(const event::Judged& e) { on_judged(run_, learners(), e); }
  void handle(const event::Trained& e);
  void handle(const event::TensorsLost& e);
  void handle(const event::Prepared& e);
  void handle(const event::WeightsStaged& e);
  void handle(const event::WeightsCommitted& e);
  void handle(const event::Switched& e);
  void handle(const event::CheckpointSaved& e);
  void handle(const event::Activity& e);
  void handle(const event::DeadlineReached&) {}
  void handle(const event::ClockRead&) {}
  void handle(const event::WorkerAttached&) {}
  void handle(const event::Scaled& e);
  void handle(const event::StopRequested& e);
  void handle(const event::Aborted& e);

  void move_everything();
  void begin_step();
  void launch_all(std::int32_t rollbacks);
  void lose_if(ActorId actor, std::optional<Reason> reason);
  Learners learners() { return {sharing_, dispatcher_, evaluations_}; }

  RunState run_;
  Lifecycle lifecycle_;
  CardSharing sharing_;
  Dispatcher dispatcher_;
  Evaluations evaluations_;
};

}  // namespace temper::orchestrator
