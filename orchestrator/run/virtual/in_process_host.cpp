#include "orchestrator/run/virtual/in_process_host.hpp"

namespace temper::orchestrator {

InProcessHost::InProcessHost(std::vector<std::string> names, SimulatedActorFactory make)
    : names_(std::move(names)), make_(std::move(make)), actors_(names_.size()) {}

Status InProcessHost::launch(ActorId actor, const actors::RoleConfig& role) {
  if (Status made = actors_.at(actor.value()).make(make_, role); !made)
    return std::move(made).error().within(names_[actor.value()]);
  return {};
}

void InProcessHost::deliver(ActorId actor, actors::OutgoingMessage message) {
  actors_.at(actor.value()).deliver(actors::IncomingMessage::from(std::move(message)));
}

void InProcessHost::lose(ActorId actor, Time now) {
  actors_.at(actor.value()).drop(now);
}

void InProcessHost::slow_down(ActorId actor, Time now, std::int64_t times, Time until) {
  actors_.at(actor.value()).slow_down(now, times, until);
}

Status InProcessHost::advance(std::span<const ActorId> actors,
                              Time now,
                              std::vector<Arrival>& arrivals) {
  ActorId speaker;
  actors::Outbox out(
      [&](actors::OutgoingMessage message) {
        auto said = actors::IncomingMessage::from(std::move(message));
        arrivals.push_back({speaker, actors_.at(speaker.value()).in_time_of_run(std::move(said))});
      },
      form());
  for (const ActorId actor : actors) {
    speaker = actor;
    if (Status status = actors_.at(actor.value()).act(now, out); !status)
      return std::move(status).error().within(names_[actor.value()]);
  }
  return {};
}

void InProcessHost::finish(std::span<const ActorId> actors,
                           Time now,
                           std::vector<Arrival>& arrivals) {
  for (const ActorId actor : actors) {
    actors::Outbox out(
        [&](actors::OutgoingMessage message) {
          auto said = actors::IncomingMessage::from(std::move(message));
          arrivals.push_back({actor, actors_.at(actor.value()).in_time_of_run(std::move(said))});
        },
        form());
    actors_.at(actor.value()).finish(now, out);
  }
}

std::optional<Time> InProcessHost::next_event(ActorId actor) const {
  return actors_.at(actor.value()).next_event();
}

}  // namespace temper::orchestrator
