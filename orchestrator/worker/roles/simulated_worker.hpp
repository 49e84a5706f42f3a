// Simulated actors as the one role of their worker: each time.advance says who takes what and acts
// until when, and time.advanced what came of it. One connection and one thread, however many they
// are.
#pragma once

#include "actors/protocol/virtual_time.hpp"
#include "orchestrator/run/virtual/hosted_actor.hpp"

#include <map>

namespace temper::orchestrator {

class SimulatedWorker final : public actors::Role {
 public:
  explicit SimulatedWorker(SimulatedActorFactory make) : make_(std::move(make)) {}

  /// Errors: a message that is not time.advance, an actor that was never made, time that goes back.
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
