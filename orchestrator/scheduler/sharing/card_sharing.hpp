// Which role has shared cards, and what each actor may do meanwhile. Holds the state machine of the
// switch (RoleSwitch) and the rule that decides whose turn it is (SharingMode). An actor with cards
// of its own may always work.
#pragma once

#include "orchestrator/scheduler/sharing/sharing_mode.hpp"
#include "orchestrator/scheduler/state/events.hpp"

namespace temper::orchestrator {

class CardSharing {
 public:
  CardSharing() = default;
  /// At the launch of all actors.
  explicit CardSharing(const RunState& run) : roles_(run.fleet), mode_(make_sharing_mode(run)) {}

  // --- Changes
  /// Requests the turn that is due, and takes every transition of a switch that can be taken.
  void drive(RunState& run);
  /// Time-shared references come to the cards one by one, also those that start meanwhile.
  void call_references(RunState& run);
  void generated(std::int64_t responses, Time now) { mode_->generated(responses, now); }
  /// An actor has taken a step of a switch. The reason if it is lost by it.
  std::optional<Reason> on_switched(RunState& run, const event::Switched& e);

  // --- What actors may do
  SwitchPhase phase() const { return roles_.phase(); }
  bool trainer_may_work() const { return roles_.allows_training(); }
  /// Gradients may be computed ahead of the batch: the cards are not given away before the step.
  bool may_prepare() const { return mode_->trainer_keeps_its_cards(); }
  /// The most groups that are scored or trained at once; nullopt: as many as there are.
  std::optional<std::int64_t> part_size(const RunState& run) const {
    return mode_->part_size(run, static_cast<std::int32_t>(std::ssize(roles_.leaving())));
  }
  /// A time-shared engine that has given up its cards, or is about to.
  bool has_left(ActorId engine) const { return roles_.has_left(engine); }
  bool may_generate(const RunState& run, ActorId engine) const {
    return !run.fleet.spec(engine).takes_turns || roles_.allows_rollout(engine);
  }
  /// Responses that were begun elsewhere may continue here under older weights than the published
  /// ones: engines that stayed keep theirs until they have no work.
  bool old_weights_may_continue() const { return mode_->engine_by_engine(); }
  bool may_get_weights(const RunState& run, ActorId engine) const {
    return !run.fleet.spec(engine).takes_turns || roles_.allows_publication(engine);
  }
  /// It has staged its weights and commits them once all others of the turn have staged theirs.
  bool must_wait_to_commit(const RunState& run, ActorId engine) const {
    return run.fleet.spec(engine).takes_turns && roles_.phase() == SwitchPhase::Reshard &&
           roles_.has_left(engine);
  }
  bool may_get_kv(const RunState& run, ActorId engine) const {
    return !run.fleet.spec(engine).takes_turns || roles_.allows_kv(engine);
  }
  bool may_score(const RunState& run, ActorId actor) const;

 private:
  void choose_turn(RunState& run) { mode_->choose_turn(run, roles_); }
  void advance(RunState& run);
  void request(RunState& run, ActorId actor, actors::SwitchAction action);

  RoleSwitch roles_;
  std::unique_ptr<SharingMode> mode_;
};

}  // namespace temper::orchestrator
