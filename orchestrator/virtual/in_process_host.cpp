#include "orchestrator/virtual/in_process_host.hpp"

#include "actors/protocol/lifecycle.hpp"

namespace temper::orchestrator {

InProcessHost::InProcessHost(std::vector<std::string> names, SimulatedActorFactory make)
    : make_(std::move(make)), slots_(names.size()) {
  for (std::size_t i = 0; i < names.size(); ++i)
    slots_[i].name = std::move(names[i]);
}

Status InProcessHost::launch(ActorId actor, const actors::RoleConfig& role) {
  Slot& slot = slots_.at(actor.value());
  auto made = make_(role);
  if (!made)
    return std::move(made).error().within(slot.name);
  slot.actor = *std::move(made);
  slot.started = false;
  slot.inbox.clear();
  slot.next.reset();
  return {};
}

void InProcessHost::deliver(ActorId actor, actors::OutgoingMessage message) {
  slots_.at(actor.value()).inbox.push_back(actors::IncomingMessage::from(std::move(message)));
}

Status InProcessHost::advance(std::span<const ActorId> actors,
                              Time now,
                              std::vector<Arrival>& arrivals) {
  ActorId speaker;
  actors::Outbox out(
      [&](actors::OutgoingMessage message) {
        arrivals.push_back({speaker, actors::IncomingMessage::from(std::move(message))});
      },
      form());
  for (const ActorId actor : actors) {
    speaker = actor;
    Slot& slot = slots_.at(actor.value());
    if (Status status = act(slot, now, out); !status) {
      slot.failed = true;
      return std::move(status).error().within(slot.name);
    }
    slot.next = slot.actor->next_event();
  }
  return {};
}

Status InProcessHost::act(Slot& slot, Time now, actors::Outbox& out) {
  TEMPER_CHECK(slot.actor != nullptr, "an actor is launched before it acts");
  if (!slot.started) {
    slot.started = true;
    TEMPER_TRY_STATUS(slot.actor->start(now, out));
  }
  for (const actors::IncomingMessage& message : slot.inbox)
    TEMPER_TRY_STATUS(slot.actor->on_message(message, now, out));
  slot.inbox.clear();
  return slot.actor->advance(now, out);
}

void InProcessHost::finish(std::span<const ActorId> actors,
                           Time now,
                           std::vector<Arrival>& arrivals) {
  for (const ActorId actor : actors) {
    Slot& slot = slots_.at(actor.value());
    if (slot.failed || !slot.started)
      continue;
    actors::Outbox out(
        [&](actors::OutgoingMessage message) {
          arrivals.push_back({actor, actors::IncomingMessage::from(std::move(message))});
        },
        form());
    if (!act(slot, now, out))
      continue;
    const auto stop = actors::IncomingMessage::from(actors::outgoing(actors::Stop{}));
    static_cast<void>(slot.actor->on_message(stop, now, out));
  }
}

std::optional<Time> InProcessHost::next_event(ActorId actor) const {
  return slots_.at(actor.value()).next;
}

}  // namespace temper::orchestrator
