#include "orchestrator/scheduler/lifecycle/scaling.hpp"

#include <utility>

namespace temper::orchestrator {
namespace {

void add(RunState& run, ActorId actor) {
  ActorState& a = run.fleet.change(actor);
  if (a.ready() && !a.retiring)
    return;  // it was to go, and has not yet
  const bool ending = a.ready();
  run.fleet.renew(actor, Life::Waiting);
  a.restarts = a.late_starts = 0;
  a.launch_at = run.now;
  // Its place may stay free for a while: what the old worker says till it ends is of nobody.
  if (ending)
    run.emit(command::Discard{actor, std::nullopt, run.now});
}

void remove(RunState& run, ActorId actor) {
  const Life life = run.fleet.state(actor).life;
  if (life != Life::Ready) {
    run.fleet.renew(actor, Life::Down);
    if (life == Life::Launching)
      run.emit(command::Retire{actor});
    return;
  }
  std::vector<ResponseId> responses = run.saved.queue.generating(actor);
  std::erase_if(responses, [&](ResponseId r) { return run.withdrawn.contains(r); });
  if (responses.empty())
    return;
  run.withdraw(actor, std::move(responses));
}

}  // namespace

void on_scaled(RunState& run, const event::Scaled& e) {
  const std::vector<ActorSpec> before = std::exchange(run.config.actors, e.actors);
  run.fleet.take(run.config.actors);
  for (std::uint32_t i = 0; i < run.fleet.size(); ++i) {
    const bool was = i < before.size() && !before[i].away;
    const bool is = !run.fleet.spec(ActorId(i)).away;
    if (is && !was)
      add(run, ActorId(i));
    if (was && !is)
      remove(run, ActorId(i));
  }
}

void retire_removed(RunState& run) {
  if (run.finished)
    return;
  for (const ActorId id : run.fleet.removed()) {
    if (!run.fleet.state(id).ready() || run.fleet.state(id).retiring)
      continue;
    ActorState& a = run.fleet.change(id);
    if (a.staging && a.staged && !a.committing) {  // what was begun is ended
      a.committing = true;
      a.weights_deadline = run.now + run.config.deadlines.weights;
      run.emit(command::CommitWeights{id, *a.staging});
    }
    if (a.staging || a.switching || run.load_of(id).leases > 0)
      continue;
    a.retiring = true;
    run.emit(command::Retire{id});
  }
}

}  // namespace temper::orchestrator
