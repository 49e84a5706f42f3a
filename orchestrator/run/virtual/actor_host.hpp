// Where the actors of a run in virtual time live: in this process, or in workers. A host moves
// messages and time; it decides nothing, and the same calls give the same arrivals whichever it is.
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

  /// How deliver() wants its messages.
  virtual actors::Outbox::Form form() const { return actors::Outbox::Form::Encoded; }

  /// The actor is started by the next advance() that names it. Error: it cannot be made.
  virtual Status launch(ActorId actor, const actors::RoleConfig& role) = 0;
  /// Its cards stop: it is gone, with what was delivered, until it is launched again. Requires:
  /// can_lose().
  virtual void lose(ActorId, Time /*now*/) {}
  /// Until `until` it takes so many times as long for its work, or stands (OwnTime::kStands).
  /// Requires: can_lose().
  virtual void hinder(ActorId, Time /*now*/, std::int64_t /*times*/, Time /*until*/) {}
  virtual bool can_lose() const { return false; }
  /// Kept for the next advance() that names the actor, which is due at the same time.
  virtual void deliver(ActorId actor, actors::OutgoingMessage message) = 0;
  /// Lets each of these actors take what was delivered and act up to `now`, and appends what they
  /// say: by actor in the order given, then in the order said. Error: an actor is lost, by name.
  virtual Status advance(std::span<const ActorId> actors,
                         Time now,
                         std::vector<Arrival>& arrivals) = 0;
  /// When the actor acts by itself next.
  virtual std::optional<Time> next_event(ActorId actor) const = 0;
  /// Lets these actors act up to `now` and say their last (actor.stop), and ends all. What cannot
  /// be had any more is left out. Nothing else is called afterwards.
  virtual void finish(std::span<const ActorId> actors,
                      Time now,
                      std::vector<Arrival>& arrivals) = 0;
};

}  // namespace temper::orchestrator
