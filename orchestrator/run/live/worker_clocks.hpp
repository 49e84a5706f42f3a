// The clocks of attached workers. Such a worker runs on another host: its clock is set to the run's
// when it is admitted, with an error of the time that this message takes, and then drifts. Its
// spans are corrected by the measured offset.
#pragma once

#include "orchestrator/run/live/actor_links.hpp"

#include <vector>

namespace temper::orchestrator {

class WorkerClocks {
 public:
  /// The references outlive this.
  WorkerClocks(RunCore& core, ActorLinks& links, const RealClock& clock)
      : core_(core), links_(links), clock_(clock), recorded_(core.config().actors.size()) {}

  /// One more actor, after the others.
  void add() { recorded_.emplace_back(); }
  /// Another worker is the actor now.
  void reset(ActorId actor) { recorded_[actor.value()] = {}; }
  /// Posts new measurements.
  void read();
  /// Moves an actor's spans into the time that it had, in their order.
  void fit(event::Activity& said) const;

 private:
  void read(ActorId actor);

  RunCore& core_;
  ActorLinks& links_;
  const RealClock& clock_;
  std::vector<actors::ClockReading> recorded_;  ///< By actor, as in the log.
};

}  // namespace temper::orchestrator
