#include "orchestrator/run/processes/connections.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {

Connections::Connections(std::vector<std::string> names, std::string secret)
    : secret_(std::move(secret)) {
  for (std::string& name : names)
    slots_.push_back({std::move(name), kNobody, std::nullopt, Time{}});
}

void Connections::expect(ActorId actor, std::int64_t pid) {
  forget(actor);
  slots_[actor.value()].pid = pid;
}

void Connections::forget(ActorId actor) {
  Slot& slot = slots_[actor.value()];
  if (slot.peer)
    peers_.erase(*slot.peer);
  slot.peer.reset();
  slot.pid = kNobody;
}

Result<ActorId> Connections::admit(const actors::PeerId& peer,
                                   const actors::Hello& hello,
                                   Time now) {
  if (hello.protocol != actors::kProtocolVersion) {
    return invalid_input(fmt::format(
        "protocol version {} is not {}; worker and orchestrator must be of the same build",
        hello.protocol,
        actors::kProtocolVersion));
  }
  if (!has_secret(hello))
    return invalid_input("the secret is not that of this run");
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.name != hello.name)
      continue;
    if (slot.peer && *slot.peer != peer) {
      return invalid_input(fmt::format("{} is connected already", hello.name));
    }
    if (slot.pid == kNobody || slot.pid != hello.pid) {
      return invalid_input(fmt::format("{} is not process {}", hello.name, hello.pid));
    }
    const auto other = actor_of(peer);
    if (other && *other != ActorId(i)) {
      return invalid_input(
          fmt::format("this connection is that of {}", slots_[other->value()].name));
    }
    slot.peer = peer;
    slot.last_heard = now;
    peers_[peer] = ActorId(i);
    return ActorId(i);
  }
  return invalid_input(fmt::format("this run has no actor named \"{}\"", hello.name));
}

std::optional<ActorId> Connections::actor_of(const actors::PeerId& peer) const {
  const auto it = peers_.find(peer);
  if (it == peers_.end())
    return std::nullopt;
  return it->second;
}

const actors::PeerId* Connections::peer_of(ActorId actor) const {
  const Slot& slot = slots_[actor.value()];
  return slot.peer ? &*slot.peer : nullptr;
}

std::vector<ActorId> Connections::silent_since(Time since) const {
  std::vector<ActorId> silent;
  for (const auto& [peer, actor] : peers_) {
    if (slots_[actor.value()].last_heard < since)
      silent.push_back(actor);
  }
  return silent;
}

}  // namespace temper::orchestrator
