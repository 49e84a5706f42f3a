#include "orchestrator/scheduler/training/publication.hpp"

#include "orchestrator/scheduler/evaluations/evaluations.hpp"

namespace temper::orchestrator {

void publish_weights(RunState& run, const CardSharing& sharing) {
  if (run.finished || !run.fleet.state(run.fleet.trainer()).ready())
    return;
  for (const ActorId id : run.fleet.rollouts()) {
    const ActorState& has = run.fleet.state(id);
    if (!has.ready() || has.switching)
      continue;
    const PolicyVersion published = wanted_version(run, id);
    if (has.staging && has.staged && !has.committing) {
      // In a role switch all engines stage before any commits; otherwise each for itself.
      if (sharing.must_wait_to_commit(run, id))
        continue;
      ActorState& a = run.fleet.change(id);
      a.committing = true;
      a.weights_deadline = run.now + run.config.deadlines.weights;
      run.emit(command::CommitWeights{id, *a.staging});
    } else if (!has.staging && has.version != published && sharing.may_get_weights(run, id)) {
      ActorState& a = run.fleet.change(id);
      a.staging = published;
      a.staged = false;
      a.weights_deadline = run.now + run.config.deadlines.weights;
      run.emit(command::StageWeights{id, published});
    } else if (!has.staging && !has.has_kv && has.version == published &&
               sharing.may_get_kv(run, id)) {
      ActorState& a = run.fleet.change(id);
      a.switching = actors::SwitchAction::AllocateKv;
      a.switch_deadline = run.now + run.config.deadlines.switching;
      run.emit(command::Switch{id, actors::SwitchAction::AllocateKv});
    }
  }
}

std::optional<Reason> on_staged(RunState& run, const event::WeightsStaged& e) {
  ActorState& a = run.fleet.change(e.actor);
  if (!a.ready() || a.staging != e.version)
    return std::nullopt;
  if (!e.error.empty()) {
    a.staging.reset();  // a newer version is tried at once
    if (e.version == run.saved.progress.version)
      return reason_with(ReasonKind::WeightsNotStaged, e.error);
    if (run.evaluation.version() == e.version)
      restart_evaluation(run);
    return std::nullopt;
  }
  a.staged = true;
  return std::nullopt;
}

std::optional<Reason> on_committed(RunState& run, const event::WeightsCommitted& e) {
  ActorState& a = run.fleet.change(e.actor);
  if (!a.ready() || a.staging != e.version || !a.committing)
    return std::nullopt;
  a.staging.reset();
  a.staged = a.committing = false;
  if (!e.error.empty())
    return reason_with(ReasonKind::WeightsRefused, e.error);
  a.version = e.version;
  return std::nullopt;
}

}  // namespace temper::orchestrator
