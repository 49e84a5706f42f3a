// Settings of a rollout worker, sent to it with its role: RoleConfig::settings.
#pragma once

#include "rollout/agent_config.hpp"
#include "rollout/engine.hpp"

namespace temper::rollout {

struct RolloutSettings {
  SamplingConfig sampling;
  std::int32_t concurrency = 128;
  Tokens synthetic_tokens{256};
  Duration synthetic_step{0};
  OnNewWeights on_new_weights = OnNewWeights::KeepKv;
  /// Requests enter the batch in order of their response id, hence group by group.
  bool deadline_first = false;
  AgentConfig agent;
};

void describe(auto& v, RolloutSettings& s) {
  v.field(1, "sampling", s.sampling, {.doc = "How responses are sampled."});
  v.field(2, "concurrency", s.concurrency, {.doc = "Largest number of responses in flight."});
  v.field(
      3, "synthetic_tokens", s.synthetic_tokens, {.doc = "Synthetic: length of every response."});
  v.field(4, "synthetic_step", s.synthetic_step, {.doc = "Synthetic: time of a decode step."});
  v.field(10,
          "on_new_weights",
          s.on_new_weights,
          {.doc = "What happens to running responses when the weights change."});
  v.field(11,
          "deadline_first",
          s.deadline_first,
          {.doc = "Whether the most urgent request enters the batch first."});
  v.field(12, "agent", s.agent, {.doc = "Program that plays multi-turn episodes."});
}

}  // namespace temper::rollout
