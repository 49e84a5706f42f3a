// The `algorithm` section: how a batch of groups becomes one policy update (SEMANTICS 1.3).
#pragma once

#include "core/describe.hpp"

namespace temper::trainer {

struct AlgorithmConfig {
  std::int32_t groups_per_update = 64;
  std::int32_t responses_per_group = 16;
  std::int32_t minibatches = 4;
  double clip_low = 0.2;
  double clip_high = 0.28;
  double kl = 0.0;
  double advantage_epsilon = 1e-4;
  double learning_rate = 2e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double adam_epsilon = 1e-8;
  double weight_decay = 0.0;
  double gradient_clip = 1.0;
  Tokens micro_batch_tokens{16384};
};

template <class V>
void describe(V& v, AlgorithmConfig& c) {
  v.field(1,
          "groups_per_update",
          c.groups_per_update,
          {.doc = "B: prompts per policy update.", .min = 1, .max = 1 << 20});
  v.field(2,
          "responses_per_group",
          c.responses_per_group,
          {.doc = "G: responses per prompt.", .min = 1, .max = 4096});
  v.field(3,
          "minibatches",
          c.minibatches,
          {.doc = "Optimizer steps per update.", .min = 1, .max = 1024});
  v.field(4,
          "clip_low",
          c.clip_low,
          {.doc = "Ratio clip below: 1 - clip_low.", .min = 0.0, .max = 1.0});
  v.field(5, "clip_high", c.clip_high, {.doc = "Ratio clip above: 1 + clip_high.", .min = 0.0});
  v.field(
      6,
      "kl",
      c.kl,
      {.doc = "Weight of the k3 KL estimate to the reference; 0 trains without it.", .min = 0.0});
  v.field(7,
          "advantage_epsilon",
          c.advantage_epsilon,
          {.doc = "Added to a group's reward deviation.", .min = 0.0});
  v.field(8, "learning_rate", c.learning_rate, {.doc = "AdamW step size.", .min = 0.0});
  v.field(9, "beta1", c.beta1, {.doc = "AdamW first moment.", .min = 0.0, .max = 0.9999});
  v.field(10, "beta2", c.beta2, {.doc = "AdamW second moment.", .min = 0.0, .max = 0.99999});
  v.field(11, "adam_epsilon", c.adam_epsilon, {.doc = "AdamW denominator.", .min = 0.0});
  v.field(12, "weight_decay", c.weight_decay, {.doc = "AdamW decoupled decay.", .min = 0.0});
  v.field(
      13, "gradient_clip", c.gradient_clip, {.doc = "Largest global gradient norm.", .min = 0.0});
  v.field(
      14,
      "micro_batch_tokens",
      c.micro_batch_tokens,
      {.doc = "Tokens (padding included) of one forward and backward pass.", .min = Tokens(16)});
}

}  // namespace temper::trainer
