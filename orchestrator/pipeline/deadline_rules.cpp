#include "orchestrator/pipeline/deadline_rules.hpp"

#include "actors/simulation/weight_moves.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "orchestrator/pipeline/switch_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace temper::orchestrator {
namespace {

/// The longest action that one deadline limits.
struct LongestAction {
  std::string what;
  double seconds = 0;

  void add(std::string_view other, double takes) {
    if (takes > seconds)
      *this = {std::string(other), takes};
  }
};

void require_in_time(const LongestAction& action,
                     const char* key,
                     Duration deadline,
                     const PipelineConfig& config,
                     Rules& rules) {
  const std::string framework =
      config.simulation.framework == sim_hw::kIdealFramework
          ? ""
          : fmt::format(" with `simulation.framework: {}`", config.simulation.framework);
  rules.require(action.seconds <= seconds(deadline),
                {key, "simulation.framework"},
                fmt::format("{} takes {:.1f} s{}, found a deadline of {}, which every run misses; "
                            "nearest: `{}: {:.0f}s`",
                            action.what,
                            action.seconds,
                            framework,
                            to_text(deadline),
                            key,
                            std::ceil(action.seconds) + 1));
}

}  // namespace

void check_deadlines(const ResolvedPipeline& pipeline, Rules& rules) {
  LongestAction weights, switching;
  if (traits_of(pipeline.placement.mode).shares) {
    const SwitchPlan plan = predict_switch(simulated_placement(pipeline));
    for (const auto& states : {plan.to_rollout, plan.to_training}) {
      for (const PredictedState& state : states) {
        (state.deadline == DeadlineKind::Switch ? switching : weights)
            .add(fmt::format("`{}` of a role switch", state.state), state.seconds);
      }
    }
  }
  const auto slot = std::ranges::find(pipeline.slots, actors::RoleKind::Rollout, &ActorSpec::role);
  if (slot != pipeline.slots.end() && !slot->takes_turns) {
    const actors::SimulationSettings engine = actor_settings(pipeline, *slot);
    const sim_hw::Fabric fabric = sim_hw::make_fabric(engine.cluster);
    weights.add("the publication of new weights", actors::publish_seconds(fabric, engine));
    weights.add("loading new weights", actors::swap_seconds(fabric, engine));
  }
  const Deadlines& deadlines = pipeline.config.deadlines;
  require_in_time(weights, "deadlines.weights", deadlines.weights, pipeline.config, rules);
  require_in_time(switching, "deadlines.switching", deadlines.switching, pipeline.config, rules);
}

}  // namespace temper::orchestrator
