// One simulated actor of a host, with its undelivered messages. Its own time may lag behind the
// run's (slowdown.hpp); all times here are the run's.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "actors/simulation/simulated_actor.hpp"
#include "orchestrator/run/virtual/slowdown.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace temper::orchestrator {

using SimulatedActorFactory =
    std::function<Result<std::unique_ptr<actors::SimulatedActor>>(const actors::RoleConfig&)>;

class HostedActor {
 public:
  /// Replaces an earlier actor. Errors: those of `factory`.
  Status make(const SimulatedActorFactory& factory, const actors::RoleConfig& role);
  /// Removes the actor. Its cards may still be slow for the next one.
  void drop(Time now);
  /// Until `until` its work takes `times` as long, or it stops (Slowdown::kStops): it takes and
  /// sends no message.
  void slow_down(Time now, std::int64_t times, Time until) { time_.slow_down(now, times, until); }
  void deliver(actors::IncomingMessage message) { inbox_.push_back(std::move(message)); }
  /// Starts if it has not, takes its messages, and acts up to `now`, unless it is stopped. After an
  /// error it no longer acts. Requires: made.
  Status act(Time now, actors::Outbox& out);
  /// Acts up to `now` and finishes, if it has started and has not failed.
  void finish(Time now, actors::Outbox& out);
  std::optional<Time> next_event() const;
  /// Its message, with times converted to the run's.
  actors::IncomingMessage in_time_of_run(actors::IncomingMessage message) const;

 private:
  enum class State { Made, Started, Failed };
  Status take_and_advance(Time own, actors::Outbox& out);

  std::unique_ptr<actors::SimulatedActor> actor_;
  State state_ = State::Made;
  std::vector<actors::IncomingMessage> inbox_;
  std::optional<Time> next_;  ///< In its own time.
  Slowdown time_;
};

}  // namespace temper::orchestrator
