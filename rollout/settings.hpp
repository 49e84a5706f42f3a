// What a rollout worker is told beside its role: RoleConfig::settings of a rollout.
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
  bool deadline_first = false;  ///< By response, which is by group.
  AgentConfig agent;
};

template <class V>
void describe(V& v, RolloutSettings& s) {
  v.field(1, "sampling", s.sampling, {.doc = "How responses are sampled."});
  v.field(2, "concurrency", s.concurrency, {.doc = "Responses in flight at most."});
  v.field(
      3, "synthetic_tokens", s.synthetic_tokens, {.doc = "Synthetic: length of every response."});
  v.field(4, "synthetic_step", s.synthetic_step, {.doc = "Synthetic: time of a step."});
  v.field(10,
          "on_new_weights",
          s.on_new_weights,
          {.doc = "What running responses go on with when weights change."});
  v.field(11,
          "deadline_first",
          s.deadline_first,
          {.doc = "What is awaited soonest enters the batch first."});
  v.field(12, "agent", s.agent, {.doc = "Who plays responses of several turns."});
}

}  // namespace temper::rollout
