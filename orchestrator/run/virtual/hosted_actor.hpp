// One simulated actor as a host keeps it: what was delivered waits until the actor acts.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "actors/simulation/simulated_actor.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace temper::orchestrator {

using SimulatedActorFactory =
    std::function<Result<std::unique_ptr<actors::SimulatedActor>>(const actors::RoleConfig&)>;

class HostedActor {
 public:
  /// Replaces an actor that was there.
  Status make(const SimulatedActorFactory& factory, const actors::RoleConfig& role);
  /// It is there no more.
  void drop();
  void deliver(actors::IncomingMessage message) { inbox_.push_back(std::move(message)); }
  /// Starts if it has not, takes what was delivered, and acts up to `now`. After an error it acts
  /// no more. Requires: made.
  Status act(Time now, actors::Outbox& out);
  /// Acts up to `now` and says its last, if it ever started and did not fail.
  void finish(Time now, actors::Outbox& out);
  std::optional<Time> next_event() const { return next_; }

 private:
  enum class State { Made, Started, Failed };
  Status take_and_advance(Time now, actors::Outbox& out);

  std::unique_ptr<actors::SimulatedActor> actor_;
  State state_ = State::Made;
  std::vector<actors::IncomingMessage> inbox_;
  std::optional<Time> next_;
};

}  // namespace temper::orchestrator
