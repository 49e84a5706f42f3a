// A run whose actors have just been launched, and the part that launches them.
#pragma once

#include "orchestrator/scheduler/lifecycle/lifecycle.hpp"
#include "tests/orchestrator/scheduler/run_state.hpp"

#include <vector>

namespace temper::orchestrator::testing {

using Actors = std::vector<ActorId>;

inline Actors launched(const RunState& run) {
  Actors actors;
  for (const auto& c : emitted<command::Launch>(run))
    actors.push_back(c.actor);
  return actors;
}

inline const Reason kCrash{.kind = ReasonKind::WorkerLost, .detail = "exit code 1"};

struct Launched {
  explicit Launched(const SchedulerConfig& config = small_config(), std::int32_t rollbacks = 0) {
    run.configure(config);
    lifecycle.launch_all(run, rollbacks);
    lifecycle.start_waiting(run);
  }
  void everybody_is_ready() {
    for (std::uint32_t i = 0; i < run.fleet.size(); ++i)
      ready(ActorId(i));
    run.out.clear();
  }
  void ready(ActorId actor) {
    lifecycle.on_ready(
        run, {actor, actor == kTrainer ? std::optional(run.saved.progress.version) : std::nullopt});
  }
  /// Time passes, and what waits for it happens.
  void advance_to(Time time) {
    run.out.clear();
    run.now = time;
    lifecycle.expire(run);
    lifecycle.start_waiting(run);
  }

  RunState run;
  Lifecycle lifecycle;
};

}  // namespace temper::orchestrator::testing
