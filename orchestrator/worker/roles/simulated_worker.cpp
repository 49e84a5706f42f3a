#include "orchestrator/worker/roles/simulated_worker.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {

Status SimulatedWorker::on_message(const actors::IncomingMessage& message, actors::Outbox& out) {
  TEMPER_TRY(auto request, message.decode<actors::Advance>());
  if (request.until < now_)
    return invalid_input("time.advance: the time decreases");
  for (const auto& act : request.acts) {
    if (!act.role && !actors_.contains(act.actor))
      return invalid_input(
          fmt::format("time.advance: actor {} does not run in this worker", act.actor));
  }
  now_ = request.until;
  out.send(advance(std::move(request)));
  return {};
}

actors::Advanced SimulatedWorker::advance(actors::Advance request) {
  actors::Advanced answer{now_, {}};
  answer.acts.reserve(request.acts.size());
  for (actors::Advance::Act& own : request.acts) {
    actors::Advanced::Act& done = answer.acts.emplace_back();
    const Status status = act(own, request.then, done.said);
    if (!status) {
      done.error = status.error().context;
      break;
    }
    done.next = actors_[own.actor].next_event();
  }
  return answer;
}

Status SimulatedWorker::act(actors::Advance::Act& request,
                            actors::Advance::Then then,
                            std::vector<actors::Carried>& said) {
  HostedActor& actor = actors_[request.actor];
  if (request.role)
    TEMPER_TRY_STATUS(actor.make(make_, *request.role));
  for (actors::Carried& m : request.messages) {
    actor.deliver(actors::IncomingMessage::from(
        {.tag = m.tag, .version = m.version, .body = std::move(m.body)}));
  }
  actors::Outbox out([&](actors::OutgoingMessage m) {
    said.push_back({m.tag, m.version, std::move(m.body)});
  });
  if (then == actors::Advance::Then::GoOn)
    return actor.act(now_, out);
  actor.finish(now_, out);
  return {};
}

}  // namespace temper::orchestrator
