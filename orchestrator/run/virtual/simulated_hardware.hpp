// The hardware of a simulated run: it launches actors once their cards are usable, and fails by the
// plan of simulation.faults (fault_plan.hpp). Actors on cards that stop are lost, as a driver on
// the wall clock loses processes. Actors that stand still for transport.heartbeat_timeout are lost
// too.
#pragma once

#include "orchestrator/run/core/run_core.hpp"
#include "orchestrator/run/fault_plan.hpp"
#include "orchestrator/run/virtual/simulated_fleet.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

class SimulatedHardware {
 public:
  /// `plan`: none if hardware does not fail. The references outlive this. Requires: the fleet can
  /// lose actors, if there is a plan.
  SimulatedHardware(const ResolvedPipeline& pipeline,
                    std::optional<FaultPlan> plan,
                    RunCore& core,
                    SimulatedFleet& fleet,
                    const Log& log);

  bool fails() const { return failures_.has_value(); }
  /// Failures until then have happened: they mark hosts as failed and affect no actor.
  void skip_until(Time now);
  /// When hardware fails next, cards become usable that an actor waits for, or a silence ends.
  std::optional<Time> next_change() const;
  /// Applies all changes that are due.
  void change(Time now);
  /// Whether an actor waits for its cards.
  bool has_waiting() const { return !waits_for_cards_.empty(); }

  void execute(const command::Launch& c);
  void execute(const command::Discard& c);
  void execute(const command::Retire&) {}  // simulated runs are not scaled

  /// Ends all actors, before a rollback.
  void end_actors(Time now);
  /// The version that the trainer starts from.
  void restore(PolicyVersion version) { start_version_ = version; }

 private:
  struct Failures {
    FaultPlan plan;
    HostPool hosts;
  };
  void fail(const Fault& fault, Time now);
  void slow_down(const Fault& fault, Time now);
  void lose_silent(Time now);
  void lose_launched(const std::vector<ActorId>& actors, const std::string& why, Time now);
  void lose(ActorId actor, Time now);
  void start(ActorId actor);
  void give_up(ActorId actor, const std::optional<Reason>& reason);

  const ResolvedPipeline& pipeline_;
  RunCore& core_;
  SimulatedFleet& fleet_;
  const Log log_;
  std::optional<Failures> failures_;         ///< None: hardware does not fail.
  std::map<ActorId, Time> waits_for_cards_;  ///< Launched actors, and when their cards are usable.
  std::map<ActorId, Time> silent_until_;     ///< Actors that stand still, and when they are lost.
  PolicyVersion start_version_;
};

}  // namespace temper::orchestrator
