// The host of the actors of a run in virtual time: this process, or workers. A host moves messages
// and time and decides nothing. Equal calls give equal arrivals on every host.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "actors/runtime/role.hpp"
#include "actors/transport/message.hpp"

#include <optional>
#include <span>
#include <vector>

namespace temper::orchestrator {

class ActorHost {
 public:
  struct Arrival {
    ActorId actor;
    actors::IncomingMessage message;
  };

  virtual ~ActorHost() = default;

  /// The form of messages for deliver().
  virtual actors::Outbox::Form form() const { return actors::Outbox::Form::Encoded; }

  /// The next advance() with the actor starts it. Error: it cannot be created.
  virtual Status launch(ActorId actor, const actors::RoleConfig& role) = 0;
  /// The actor is gone, with its undelivered messages, until it is launched again. Requires:
  /// can_lose().
  virtual void lose(ActorId, Time /*now*/) {}
  /// Until `until` its work takes `times` as long, or it stops (Slowdown::kStops). Requires:
  /// can_lose().
  virtual void slow_down(ActorId, Time /*now*/, std::int64_t /*times*/, Time /*until*/) {}
  virtual bool can_lose() const { return false; }
  /// Keeps a message for the next advance() with the actor, which is at the same time.
  virtual void deliver(ActorId actor, actors::OutgoingMessage message) = 0;
  /// Each of these actors takes its messages and acts up to `now`. Appends what they say, by actor
  /// in the given order. Error: an actor is lost, by name.
  virtual Status advance(std::span<const ActorId> actors,
                         Time now,
                         std::vector<Arrival>& arrivals) = 0;
  /// When the actor next acts by itself.
  virtual std::optional<Time> next_event(ActorId actor) const = 0;
  /// These actors act up to `now` and finish (actor.stop); then all end. Messages that can no
  /// longer be received are left out. The last call.
  virtual void finish(std::span<const ActorId> actors,
                      Time now,
                      std::vector<Arrival>& arrivals) = 0;
};

}  // namespace temper::orchestrator
