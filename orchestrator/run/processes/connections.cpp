#include "orchestrator/run/processes/connections.hpp"

#include "orchestrator/run/processes/key_ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace temper::orchestrator {

Connections::Connections(std::vector<std::string> names, std::string secret)
    : secret_(std::move(secret)) {
  for (std::string& name : names)
    slots_.push_back({.name = std::move(name)});
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
  slot.awaited = false;
  slot.key.clear();
}

std::size_t Connections::places(const std::string& place) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      slots_, [&](const Slot& slot) { return slot.attached && covers(place, slot.name); }));
}

void Connections::await(ActorId actor) {
  forget(actor);
  slots_[actor.value()].awaited = true;
}

Status Connections::check(const actors::Hello& hello) const {
  if (hello.protocol != actors::kProtocolVersion) {
    return invalid_input(fmt::format(
        "protocol version {} is not {}; worker and orchestrator must be of the same build",
        hello.protocol,
        actors::kProtocolVersion));
  }
  if (!has_secret(hello))
    return invalid_input("the secret is not that of this run");
  return {};
}

ActorId Connections::bind(std::size_t slot, const actors::PeerId& peer, Time now) {
  const ActorId actor(static_cast<std::uint32_t>(slot));
  slots_[slot].peer = peer;
  slots_[slot].last_heard = now;
  peers_[peer] = actor;
  return actor;
}

Result<ActorId> Connections::admit(const actors::PeerId& peer,
                                   const actors::Hello& hello,
                                   Time now) {
  TEMPER_TRY_STATUS(check(hello));
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
    return bind(i, peer, now);
  }
  return invalid_input(fmt::format("this run has no actor named \"{}\"", hello.name));
}

Status Connections::check_run(const actors::Hello& hello, const Applicant& applicant) const {
  TEMPER_TRY_STATUS(check(hello));
  if (hello.run != applicant.run) {
    return invalid_input(
        fmt::format("its key is of run {}, and this is run {}", hello.run, applicant.run));
  }
  if (hello.incarnation > applicant.incarnation) {
    return Error{ErrorCode::Unavailable,
                 fmt::format("it has served orchestrator {} of the run; this is number {}, which "
                             "that one has succeeded",
                             hello.incarnation,
                             applicant.incarnation)};
  }
  return {};
}

/// None: all slots that it may have are taken. Error: it may have none.
Result<std::optional<std::size_t>> Connections::find_place(const actors::Hello& hello,
                                                           const Applicant& applicant) const {
  std::optional<std::size_t> rank;
  std::string wish = hello.name;
  if (wish.starts_with('#')) {
    std::size_t number = 0;
    if (std::from_chars(wish.data() + 1, wish.data() + wish.size(), number).ec == std::errc())
      rank = number;
    wish = "any";
  }
  bool exists = false, allowed = false;
  std::optional<std::size_t> had, named, first;
  std::size_t number = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (!slot.attached)
      continue;
    const bool of_rank = rank && *rank == number++;
    if (!covers(wish, slot.name))
      continue;
    exists = true;
    if (!covers(applicant.place, slot.name))
      continue;
    allowed = true;
    if (!slot.awaited || slot.peer)
      continue;
    if (slot.name == hello.was)
      had = i;
    if (of_rank)
      named = i;
    if (!first)
      first = i;
  }
  if (!exists) {
    return invalid_input(fmt::format(
        "no worker is waited for as \"{}\": the run has no such actor, or starts it itself "
        "(`launch: local`)",
        hello.name));
  }
  if (!allowed) {
    return invalid_input(fmt::format(
        "the key {} is for {}, not for {}", applicant.key, applicant.place, hello.name));
  }
  return had ? had : named ? named : first;
}

Result<ActorId> Connections::admit_attached(const actors::PeerId& peer,
                                            const actors::Hello& hello,
                                            const Applicant& applicant,
                                            Time now) {
  TEMPER_TRY_STATUS(check_run(hello, applicant));
  if (const auto already = actor_of(peer))
    return *already;
  TEMPER_TRY(const auto place, find_place(hello, applicant));
  if (!place) {
    return Error{ErrorCode::Unavailable,
                 fmt::format("every place that it may have ({}) is taken", hello.name)};
  }
  slots_[*place].key = applicant.key;
  return bind(*place, peer, now);
}

std::vector<ActorId> Connections::connected_by(const std::string& key) const {
  std::vector<ActorId> found;
  for (const auto& [peer, actor] : peers_) {
    if (slots_[actor.value()].key == key)
      found.push_back(actor);
  }
  return found;
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
