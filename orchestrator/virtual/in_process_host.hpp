// Actors as plain objects, called directly; messages pass as they are, never encoded.
#pragma once

#include "actors/simulation/simulated_actor.hpp"
#include "orchestrator/virtual/actor_host.hpp"

#include <functional>
#include <memory>
#include <string>

namespace temper::orchestrator {

using SimulatedActorFactory =
    std::function<Result<std::unique_ptr<actors::SimulatedActor>>(const actors::RoleConfig&)>;

class InProcessHost final : public ActorHost {
 public:
  /// `names`: of the actors, by id.
  InProcessHost(std::vector<std::string> names, SimulatedActorFactory make);

  actors::Outbox::Form form() const override { return actors::Outbox::Form::Value; }
  Status launch(ActorId actor, const actors::RoleConfig& role) override;
  void deliver(ActorId actor, actors::OutgoingMessage message) override;
  Status advance(std::span<const ActorId> actors,
                 Time now,
                 std::vector<Arrival>& arrivals) override;
  std::optional<Time> next_event(ActorId actor) const override;
  void finish(std::span<const ActorId> actors, Time now, std::vector<Arrival>& arrivals) override;

 private:
  struct Slot {
    std::string name;
    std::unique_ptr<actors::SimulatedActor> actor;
    bool started = false;
    bool failed = false;
    std::vector<actors::IncomingMessage> inbox;
    std::optional<Time> next;
  };
  static Status act(Slot& slot, Time now, actors::Outbox& out);

  const SimulatedActorFactory make_;
  std::vector<Slot> slots_;
};

}  // namespace temper::orchestrator
