// Actors that come to a run, or are taken from it, while it goes on (docs/resume.md). Who comes is
// launched like any other. Who is taken away gets no new work: what it trains for is asked back and
// goes on elsewhere, the rest it finishes; then its worker is to end.
#include "orchestrator/scheduler/scheduler.hpp"

#include <utility>

namespace temper::orchestrator {

void Scheduler::handle(const event::Scaled& e) {
  const std::vector<ActorSpec> before = std::exchange(config_.actors, e.actors);
  fleet_.take(config_.actors);
  for (std::uint32_t i = 0; i < fleet_.size(); ++i) {
    const bool was = i < before.size() && !before[i].away;
    const bool is = !fleet_.spec(ActorId(i)).away;
    if (is && !was)
      bring(ActorId(i));
    if (was && !is)
      take_away(ActorId(i));
  }
}

void Scheduler::bring(ActorId actor) {
  ActorState& a = fleet_.state(actor);
  if (a.ready() && !a.retiring)
    return;  // it was to go, and has not yet
  const bool ending = a.ready();
  fleet_.renew(actor, Life::Waiting);
  a.restarts = a.late_starts = 0;
  a.launch_at = now_;
  // Its place may stay free for a while: what the old worker says till it ends is of nobody.
  if (ending)
    emit(command::Discard{actor, std::nullopt, now_});
}

void Scheduler::take_away(ActorId actor) {
  const Life life = fleet_.state(actor).life;
  if (life != Life::Ready) {
    fleet_.renew(actor, Life::Down);
    if (life == Life::Launching)
      emit(command::Retire{actor});
    return;
  }
  std::vector<ResponseId> responses = stored_.queue.generating(actor);
  std::erase_if(responses, [this](ResponseId r) { return withdrawn_.contains(r); });
  if (responses.empty())
    return;
  withdrawn_.insert(responses.begin(), responses.end());
  emit(command::Withdraw{actor, std::move(responses)});
}

void Scheduler::retire() {
  if (finished_)
    return;
  for (std::uint32_t i = 0; i < fleet_.size(); ++i) {
    const ActorId id(i);
    ActorState& a = fleet_.state(id);
    if (!fleet_.spec(id).away || !a.ready() || a.retiring)
      continue;
    if (a.staging && a.staged && !a.committing) {  // what was begun is ended
      a.committing = true;
      a.weights_deadline = now_ + config_.deadlines.weights;
      emit(command::CommitWeights{id, *a.staging});
    }
    if (a.staging || a.switching || load_of(id).leases > 0)
      continue;
    a.retiring = true;
    emit(command::Retire{id});
  }
}

}  // namespace temper::orchestrator
