// Actors as plain objects that are called directly; messages are not encoded.
#pragma once

#include "orchestrator/run/virtual/actor_host.hpp"
#include "orchestrator/run/virtual/hosted_actor.hpp"

#include <string>

namespace temper::orchestrator {

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
  void lose(ActorId actor, Time now) override;
  void slow_down(ActorId actor, Time now, std::int64_t times, Time until) override;
  bool can_lose() const override { return true; }
  std::optional<Time> next_event(ActorId actor) const override;
  void finish(std::span<const ActorId> actors, Time now, std::vector<Arrival>& arrivals) override;

 private:
  const std::vector<std::string> names_;
  const SimulatedActorFactory make_;
  std::vector<HostedActor> actors_;
};

}  // namespace temper::orchestrator
