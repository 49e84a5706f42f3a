// Time of each state of a role switch (docs/explanation/co-location.md, section 2.2), from the
// records of a run: from the first command of the state to the last answer, over all time-shared
// actors. It includes what the state waits for: the current step of an engine, and the slowest of
// several engines.
//
//   offload_optimizer, onload_optimizer, interrupt, free_kv, free_weights, onload_reference,
//   offload_reference, allocate_kv     from Switch to Switched
//   reshard                            from StageWeights to WeightsStaged
//   bind                               from CommitWeights to WeightsCommitted
#pragma once

#include "orchestrator/record/event_log.hpp"

#include <map>
#include <set>
#include <string>

namespace temper::orchestrator {

/// One state of a role switch, summed over all switches of a run.
struct TurnState {
  std::uint64_t count = 0;
  Duration total{}, longest{};
};

class Turns {
 public:
  /// Call for every record, in order.
  void feed(const Record& record);
  /// By name of the state; empty if no cards are time-shared.
  const std::map<std::string, TurnState>& states() const { return states_; }

 private:
  struct OpenState {
    Time began{};
    std::set<ActorId> actors;
  };

  void begin(std::string_view state, ActorId actor, Time now);
  void take_actors(const std::vector<ActorSpec>& actors);
  void forget(ActorId actor);
  void end(std::string_view state, ActorId actor, Time now);
  bool counts(ActorId actor) const { return turning_.contains(actor); }

  std::set<ActorId> turning_;  ///< Time-shared actors, and the trainer.
  std::map<std::string, OpenState, std::less<>> open_;
  std::map<std::string, TurnState> states_;
};

}  // namespace temper::orchestrator
