// A simulated actor as the role of a worker: messages wait for the time.advance that says when they
// arrive, and each is answered by time.advanced.
#pragma once

#include "actors/runtime/role.hpp"
#include "actors/simulation/simulated_actor.hpp"

#include <memory>
#include <vector>

namespace temper::orchestrator {

class SimulatedRole final : public actors::Role {
 public:
  explicit SimulatedRole(std::unique_ptr<actors::SimulatedActor> actor)
      : actor_(std::move(actor)) {}

  Status on_message(const actors::IncomingMessage& message, actors::Outbox& out) override;
  Status stop(actors::Outbox& out) override;

 private:
  Status advance(Time until, actors::Outbox& out);

  std::unique_ptr<actors::SimulatedActor> actor_;
  std::vector<actors::IncomingMessage> inbox_;
  bool started_ = false;
  Time now_{};
};

}  // namespace temper::orchestrator
