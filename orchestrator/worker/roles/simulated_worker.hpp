// A worker whose one role is to run many simulated actors: each time.advance delivers messages to
// actors and runs them up to a time; time.advanced returns the results. It uses one connection and
// one thread for all actors.
#pragma once

#include "actors/protocol/virtual_time.hpp"
#include "orchestrator/run/virtual/hosted_actor.hpp"

#include <map>

namespace temper::orchestrator {

class SimulatedWorker final : public actors::Role {
 public:
  explicit SimulatedWorker(SimulatedActorFactory make) : make_(std::move(make)) {}

  /// Errors: a message other than time.advance, an unknown actor, time that decreases.
  Status on_message(const actors::IncomingMessage& message, actors::Outbox& out) override;

 private:
  actors::Advanced advance(actors::Advance request);
  Status act(actors::Advance::Act& request,
             actors::Advance::Then then,
             std::vector<actors::Carried>& said);

  const SimulatedActorFactory make_;
  std::map<ActorId, HostedActor> actors_;
  Time now_{};
};

}  // namespace temper::orchestrator
