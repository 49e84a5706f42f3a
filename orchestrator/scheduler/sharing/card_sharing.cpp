#include "orchestrator/scheduler/sharing/card_sharing.hpp"

#include "orchestrator/scheduler/sharing/lending.hpp"
#include "orchestrator/scheduler/sharing/one_by_one.hpp"
#include "orchestrator/scheduler/sharing/together.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// Every actor has exclusive cards.
class Separate final : public SharingMode {
 public:
  void choose_turn(const RunState&, RoleSwitch&) override {}
  bool trainer_keeps_its_cards() const override { return true; }
};

}  // namespace

std::unique_ptr<SharingMode> make_sharing_mode(const RunState& run) {
  if (run.config.switching == Switching::OneByOne)
    return std::make_unique<OneByOne>(run);
  if (!run.fleet.takes_turns())
    return std::make_unique<Separate>();
  if (run.fleet.lends())
    return std::make_unique<Lending>(run);
  return std::make_unique<Together>();
}

bool references_are_busy(const RunState& run) {
  return std::ranges::any_of(run.fleet.turning_references(), [&](ActorId a) {
    return run.saved.queue.load(a).leases > 0 || run.fleet.state(a).switching;
  });
}

void end_scoring_if_done(const RunState& run, RoleSwitch& roles) {
  if (!references_are_busy(run) && run.saved.queue.ready(Task::Reference).empty())
    roles.scored();
}

void CardSharing::drive(RunState& run) {
  if (run.finished)
    return;
  const SwitchPhase before = roles_.phase();
  const bool goes_on = !run.draining() || run.evaluation_has_the_cards();
  if (goes_on)
    choose_turn(run);
  advance(run);
  // A trainer that has just come to its cards spreads over more before it begins, not after.
  if (goes_on && mode_->engine_by_engine() && !run.finished && before != SwitchPhase::Train &&
      roles_.phase() == SwitchPhase::Train) {
    choose_turn(run);
    advance(run);
  }
}

void CardSharing::advance(RunState& run) {
  const SwitchPhase before = roles_.phase();
  const Status status = roles_.advance(
      run.fleet, run.saved.progress.version, [&](ActorId a, actors::SwitchAction action) {
        request(run, a, action);
      });
  if (!status) {
    return run.finish(Ending::Failed,
                      reason_with(ReasonKind::OptimizerRefused, status.error().context));
  }
  if (roles_.phase() != before)
    mode_->phase_begins(run, roles_.phase());
}

void CardSharing::request(RunState& run, ActorId actor, actors::SwitchAction action) {
  using A = actors::SwitchAction;
  ActorState& a = run.fleet.change(actor);
  a.switching = action;
  a.switch_deadline = run.now + run.config.deadlines.switching;
  // Those that work on cards of engines that have left are told which.
  const bool onloads = action == A::OnloadOptimizer || action == A::OnloadReference;
  run.emit(command::Switch{
      actor,
      action,
      mode_->engine_by_engine() && onloads ? roles_.leaving() : std::vector<ActorId>{}});
}

std::optional<Reason> CardSharing::on_switched(RunState& run, const event::Switched& e) {
  ActorState& a = run.fleet.change(e.actor);
  if (!a.ready() || a.switching != e.action)
    return std::nullopt;
  a.switching.reset();
  using A = actors::SwitchAction;
  if (!e.error.empty()) {
    if (e.action == A::OnloadOptimizer) {
      roles_.onload_refused(e.error);
      return std::nullopt;
    }
    Reason reason = reason_with(ReasonKind::SwitchFailed, e.error);
    reason.action = e.action;
    return reason;
  }
  if (e.action == A::AllocateKv)
    a.has_kv = true;
  if (e.action == A::FreeKv)
    a.has_kv = false;
  if (e.action == A::FreeWeights)
    a.version.reset();
  if (e.action == A::OnloadReference)
    a.onboard = true;
  if (e.action == A::OffloadReference)
    a.onboard = false;
  return std::nullopt;
}

void CardSharing::call_references(RunState& run) {
  if (run.finished || !roles_.allows_reference())
    return;
  for (const ActorId id : run.fleet.turning_references()) {
    const ActorState& a = run.fleet.state(id);
    if (a.ready() && !a.onboard && !a.switching)
      request(run, id, actors::SwitchAction::OnloadReference);
  }
}

bool CardSharing::may_score(const RunState& run, ActorId id) const {
  const ActorState& a = run.fleet.state(id);
  if (!a.ready() || !run.fleet.spec(id).takes_turns)
    return a.ready();
  return a.onboard && !a.switching && roles_.phase() == SwitchPhase::Score;
}

}  // namespace temper::orchestrator
