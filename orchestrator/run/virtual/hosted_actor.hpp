// One simulated actor as a host keeps it: what was delivered waits until the actor acts. It lives
// in its own time (own_time.hpp); all times here are of the run.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "actors/simulation/simulated_actor.hpp"
#include "orchestrator/run/virtual/own_time.hpp"

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
  /// It is there no more. Its place may still be slow for the next.
  void drop(Time now);
  /// From now on until `until` it takes so many times as long for its work, or stands
  /// (OwnTime::kStands): it takes and says nothing.
  void hinder(Time now, std::int64_t times, Time until) { time_.hinder(now, times, until); }
  void deliver(actors::IncomingMessage message) { inbox_.push_back(std::move(message)); }
  /// Starts if it has not, takes what was delivered, and acts up to `now`, unless it stands. After
  /// an error it acts no more. Requires: made.
  Status act(Time now, actors::Outbox& out);
  /// Acts up to `now` and says its last, if it ever started and did not fail.
  void finish(Time now, actors::Outbox& out);
  std::optional<Time> next_event() const;
  /// What it said, with the times in it as those of the run.
  actors::IncomingMessage in_time_of_run(actors::IncomingMessage message) const;

 private:
  enum class State { Made, Started, Failed };
  Status take_and_advance(Time own, actors::Outbox& out);

  std::unique_ptr<actors::SimulatedActor> actor_;
  State state_ = State::Made;
  std::vector<actors::IncomingMessage> inbox_;
  std::optional<Time> next_;  ///< In its own time.
  OwnTime time_;
};

}  // namespace temper::orchestrator
