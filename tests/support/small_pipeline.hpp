// A small pipeline on simulated cards: a model that fits one card, short answers; a run of it takes
// milliseconds.
#pragma once

#include "orchestrator/pipeline/simulation.hpp"

namespace temper::testing {

inline orchestrator::PipelineConfig small_pipeline() {
  orchestrator::PipelineConfig c;
  c.name = "small";
  c.hardware = orchestrator::HardwareKind::Simulated;
  c.policy = actors::PolicyKind::Synthetic;
  c.steps = 8;
  c.algorithm.groups_per_update = 8;
  c.algorithm.responses_per_group = 4;
  c.algorithm.minibatches = 1;
  c.staleness.bound = 1;
  c.placement.cards = 8;
  c.placement.rollout_cards = 4;
  c.placement.reference_cards = 1;
  c.rollout.replicas = 2;
  c.rollout.concurrency = 16;
  c.simulation.cluster = "cm384";
  c.simulation.model = "qwen2.5-0.5b";
  c.simulation.prompt.kind = actors::LengthKind::Constant;
  c.simulation.prompt.mean = 64;
  c.simulation.response.mean = 256;
  c.simulation.response.p99_over_median = 4;
  c.simulation.response.cap = Tokens(1024);
  orchestrator::set_simulated_defaults(c, [](const std::string&) { return false; });
  return c;
}

}  // namespace temper::testing
