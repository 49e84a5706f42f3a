// Small runs of the shipped supernode in every placement mode.
#pragma once

#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/validate.hpp"
#include "tests/support/simulated_run.hpp"

#include <map>
#include <string>

namespace temper::orchestrator::testing {

inline PipelineConfig shipped(const char* name) {
  PipelineConfig c = load_config(std::string(TEMPER_CONFIGS "/") + name + ".yaml").value();
  c.algorithm.groups_per_update = 96;
  c.steps = 3;
  return c;
}

/// By name. Each is valid, and takes a fraction of a second.
inline std::map<std::string, PipelineConfig> placed_runs() {
  std::map<std::string, PipelineConfig> runs;
  for (const int bound : {0, 1, 2}) {
    const auto add = [&](const std::string& mode, PipelineConfig c) {
      c.staleness.bound = bound;
      runs.emplace(mode + ", bound " + std::to_string(bound), std::move(c));
    };
    const auto preparing = [](PipelineConfig c) {
      c.stragglers.prepare = true;
      return c;
    };
    const PipelineConfig separate = shipped("cm384_pangu");
    add("separate", separate);
    add("separate, prepare", preparing(separate));
    PipelineConfig just_in_time = separate;
    just_in_time.staleness.admission = Admission::JustInTime;
    add("separate, just in time", just_in_time);
    PipelineConfig lending = separate;
    lending.placement.mode = PlacementMode::Hybrid;
    lending.placement.lending = LendingRule::Always;
    add("hybrid", lending);
    const PipelineConfig fused = shipped("cm384_pangu_fused");
    add("fused", fused);
    PipelineConfig interrupted = fused;
    interrupted.placement.return_share = 0.25;
    add("fused, interrupted", interrupted);
    PipelineConfig one_by_one = fused;
    one_by_one.placement.switching = Switching::OneByOne;
    add("one by one", one_by_one);
    add("one by one, prepare", preparing(one_by_one));
    PipelineConfig colocated = fused;
    colocated.placement.mode = PlacementMode::Colocated;
    colocated.reference.replicas = 0;
    colocated.algorithm.kl = 0;
    add("colocated", colocated);
    colocated.placement.switching = Switching::OneByOne;
    add("colocated, one by one", colocated);
  }
  return runs;
}

}  // namespace temper::orchestrator::testing
