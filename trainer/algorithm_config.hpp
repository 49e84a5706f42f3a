// The `algorithm` section: how a batch of groups becomes one policy update (docs/semantics.md,
// section 3). `name` selects a row of algorithm_table.hpp; what is absent here is as that row says.
#pragma once

#include "trainer/algorithm.hpp"

namespace temper::trainer {

struct AlgorithmConfig {
  AlgorithmName name = AlgorithmName::Grpo;
  std::int32_t groups_per_update = 64;
  std::int32_t responses_per_group = 16;
  std::int32_t minibatches = 4;
  std::optional<double> clip_low;
  std::optional<double> clip_high;
  double kl = 0.0;
  double advantage_epsilon = 1e-4;
  double learning_rate = 2e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double adam_epsilon = 1e-8;
  double weight_decay = 0.0;
  double gradient_clip = 1.0;
  Tokens micro_batch_tokens{16384};
  std::optional<Objective> objective;
  std::optional<AdvantageMean> advantage_mean;
  std::optional<AdvantageStd> advantage_std;
  std::optional<RatioLevel> ratio;
  std::optional<Averaging> average;
  std::optional<double> behaviour_weight_cap;
  std::optional<WeightMode> behaviour_weight_mode;
  std::optional<bool> filter_equal_rewards;
  double filter_limit = 16;
  double failure_limit = 8;
  std::optional<Tokens> overlong_buffer;
  double overlong_penalty = 1;
};

namespace detail {

/// The columns of the table.
template <class V>
void describe_columns(V& v, AlgorithmConfig& c) {
  v.field(16,
          "objective",
          c.objective,
          {.doc = "Loss of a token: `clip` (around the behaviour policy), `naive` (around the "
                  "proximal policy, nothing corrects for the stale sampler), `decoupled`, `tis`, "
                  "`cispo`, `reinforce`."});
  v.field(17, "advantage_mean", c.advantage_mean, {.doc = "Subtracted from a reward."});
  v.field(
      18, "advantage_std", c.advantage_std, {.doc = "Deviation by which advantages are divided."});
  v.field(19, "ratio", c.ratio, {.doc = "Ratios of tokens, or their mean over a response."});
  v.field(20,
          "average",
          c.average,
          {.doc = "Mean over tokens, over responses of their mean, or sum over tokens by "
                  "responses times `sampling.max_new_tokens`."});
  v.field(21,
          "behaviour_weight_cap",
          c.behaviour_weight_cap,
          {.doc = "decoupled, tis: largest weight of proximal over behaviour probability."});
  v.field(22,
          "behaviour_weight_mode",
          c.behaviour_weight_mode,
          {.doc = "decoupled: what happens to a token above it."});
  v.field(23,
          "filter_equal_rewards",
          c.filter_equal_rewards,
          {.doc = "A judged group whose rewards are all equal is replaced by a new one."});
  v.field(24,
          "filter_limit",
          c.filter_limit,
          {.doc = "Groups replaced so between two updates, as multiples of groups_per_update; "
                  "further ones are trained, so that a run ends whose every prompt is solved.",
           .min = 0.0});
  v.field(
      27,
      "failure_limit",
      c.failure_limit,
      {.doc = "Groups that may fail between two updates, as multiples of groups_per_update, and "
              "at least 16; one more ends the run with the reason of the last.",
       .min = 0.0,
       .max = 1e6});
  v.field(25,
          "overlong_buffer",
          c.overlong_buffer,
          {.doc = "The last so many tokens before `sampling.max_new_tokens` lower the reward "
                  "linearly, down to `overlong_penalty` less; 0: none do."});
  v.field(26,
          "overlong_penalty",
          c.overlong_penalty,
          {.doc = "Taken from the reward of a response of full length.", .min = 0.0});
}

}  // namespace detail

template <class V>
void describe(V& v, AlgorithmConfig& c) {
  v.field(
      15,
      "name",
      c.name,
      {.doc = "Row of the table of algorithms (docs/algorithms.md); null keys are as it says."});
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
  v.field(4, "clip_low", c.clip_low, {.doc = "Ratio clip below: 1 - clip_low."});
  v.field(5, "clip_high", c.clip_high, {.doc = "Ratio clip above: 1 + clip_high."});
  v.field(
      6,
      "kl",
      c.kl,
      {.doc = "Weight of the k3 KL estimate to the reference; 0 trains without it.", .min = 0.0});
  v.field(7,
          "advantage_epsilon",
          c.advantage_epsilon,
          {.doc = "Added to a deviation of rewards.", .min = 0.0});
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
  detail::describe_columns(v, c);
}

}  // namespace temper::trainer
