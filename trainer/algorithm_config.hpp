// The `algorithm` section: advantages, loss and optimizer of a step (docs/explanation/semantics.md,
// section 3). `name` selects a row of algorithm_table.hpp; an unset optional takes its value from
// that row.
#pragma once

#include "trainer/algorithm.hpp"
#include "trainer/learning_rate.hpp"

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
  LearningRateSchedule learning_rate_schedule;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double adam_epsilon = 1e-8;
  double weight_decay = 0.0;
  double gradient_clip = 1.0;
  bool scale_by_effective_samples = false;
  Tokens micro_batch_tokens{16384};
  std::optional<Objective> objective;
  std::optional<Proximal> proximal;
  std::optional<AdvantageMean> advantage_mean;
  std::optional<AdvantageStd> advantage_std;
  std::optional<RatioLevel> ratio;
  std::optional<Averaging> average;
  std::optional<double> behaviour_weight_floor;
  std::optional<double> behaviour_weight_cap;
  std::optional<WeightMode> behaviour_weight_mode;
  std::optional<WeightLevel> behaviour_weight_level;
  std::optional<double> distillation;
  std::int32_t distillation_top_k = 0;
  std::optional<double> reward_weight;
  std::optional<bool> filter_equal_rewards;
  double filter_limit = 16;
  double failure_limit = 8;
  std::optional<Tokens> overlong_buffer;
  double overlong_penalty = 1;
  CriticConfig critic;
};

namespace detail {

/// Keys about groups that are left out, and about long responses.
void describe_limits(auto& v, AlgorithmConfig& c) {
  v.field(23,
          "filter_equal_rewards",
          c.filter_equal_rewards,
          {.doc = "Replace a judged group whose rewards are all equal by a new one, because its "
                  "advantages are 0 (dynamic sampling)."});
  v.field(
      24,
      "filter_limit",
      c.filter_limit,
      {.doc = "Limit of filtered groups per step, as a multiple of `groups_per_update`. Beyond it "
              "such groups are trained, so that a run ends even if the policy solves every prompt.",
       .min = 0.0});
  v.field(27,
          "failure_limit",
          c.failure_limit,
          {.doc = "Limit of failed groups per step, as a multiple of `groups_per_update`, but at "
                  "least 16 groups. One more ends the run with the reason of the last failure.",
           .min = 0.0,
           .max = 1e6});
  v.field(
      25,
      "overlong_buffer",
      c.overlong_buffer,
      {.doc =
           "Soft length penalty: over the last this many tokens before `sampling.max_new_tokens`, "
           "the reward decreases linearly by up to `overlong_penalty`. 0: no penalty."});
  v.field(26,
          "overlong_penalty",
          c.overlong_penalty,
          {.doc = "Amount subtracted from the reward of a response of full length.", .min = 0.0});
}

/// Keys about the behaviour weight.
void describe_weight(auto& v, AlgorithmConfig& c) {
  v.field(28,
          "behaviour_weight_floor",
          c.behaviour_weight_floor,
          {.doc = "decoupled, tis: smallest behaviour weight. From 0 (none) to 1."});
  v.field(21,
          "behaviour_weight_cap",
          c.behaviour_weight_cap,
          {.doc = "decoupled, tis: largest behaviour weight, the ratio of proximal to behaviour "
                  "probability. At least 1."});
  v.field(22,
          "behaviour_weight_mode",
          c.behaviour_weight_mode,
          {.doc = "decoupled: treatment of a weight below the floor or above the cap. `clamp`: the "
                  "nearer of them is used; `mask`: its tokens are left out of the loss."});
  v.field(29,
          "behaviour_weight_level",
          c.behaviour_weight_level,
          {.doc = "decoupled, tis: `token`: a weight per token; `geometric`: one per response, the "
                  "geometric mean of its token ratios; `sequence`: one per response, their "
                  "product. Null: that of the row, or `geometric` with `ratio: sequence`."});
}

/// Keys about a teacher.
void describe_distillation(auto& v, AlgorithmConfig& c) {
  v.field(30,
          "distillation",
          c.distillation,
          {.doc = "On-policy distillation: weight of log(teacher / sampler) of each sampled token, "
                  "its negative reverse KL, in the token's advantage. The teacher is the reference "
                  "(`reference.model`). 0: none."});
  v.field(36,
          "distillation_top_k",
          c.distillation_top_k,
          {.doc = "Most likely tokens of the teacher at each token, as many as this. The loss is "
                  "then `distillation` times the reverse KL to the teacher over these tokens and "
                  "all others together, in place of the sampled token's advantage. 0: the sampled "
                  "token.",
           .min = 0});
  v.field(31,
          "reward_weight",
          c.reward_weight,
          {.doc = "Weight of the advantage from the reward beside `distillation`. 0: rewards are "
                  "judged and reported only."});
}

/// Keys that override a column of the table.
void describe_columns(auto& v, AlgorithmConfig& c) {
  v.field(16,
          "objective",
          c.objective,
          {.doc = "Per-token loss. `clip`: clipped around the behaviour policy; `naive`: clipped "
                  "around the proximal policy, without correction for stale samples; `decoupled`, "
                  "`tis`, `cispo`, `reinforce`: see docs/reference/algorithms.md."});
  v.field(34,
          "proximal",
          c.proximal,
          {.doc = "naive, decoupled, tis: log-probs under the weights before the step. "
                  "`recomputed`: by one more forward pass; `interpolated`: between those of the "
                  "sampler and of the current weights, by versions (A-3PO)."});
  v.field(17,
          "advantage_mean",
          c.advantage_mean,
          {.doc = "Baseline that is subtracted from a reward: nothing, the mean of the group or of "
                  "the batch, or the mean of the other responses of the group. `critic`: the "
                  "values of a second network, for an advantage per token (GAE)."});
  v.field(18,
          "advantage_std",
          c.advantage_std,
          {.doc = "Standard deviation of rewards by which advantages are divided: none, of the "
                  "group or of the batch. With a critic, `batch` whitens the advantages of all "
                  "tokens of the batch."});
  v.field(
      19,
      "ratio",
      c.ratio,
      {.doc =
           "Level of the importance ratio: per token, or the geometric mean over the response."});
  v.field(20,
          "average",
          c.average,
          {.doc = "How token losses are averaged. `token`: over all tokens; `sequence`: over each "
                  "response first, then over responses; `constant`: sum divided by responses times "
                  "`sampling.max_new_tokens`."});
  describe_weight(v, c);
  describe_distillation(v, c);
  describe_limits(v, c);
  v.field(33,
          "critic",
          c.critic,
          {.doc = "The critic of `advantage_mean: critic`: a second network of the policy's "
                  "shape, trained beside it."});
}

void describe_optimizer(auto& v, AlgorithmConfig& c) {
  v.field(8, "learning_rate", c.learning_rate, {.doc = "Learning rate of AdamW.", .min = 0.0});
  v.field(35,
          "learning_rate_schedule",
          c.learning_rate_schedule,
          {.doc = "How the learning rates of the policy and the critic change during the run."});
  v.field(9,
          "beta1",
          c.beta1,
          {.doc = "AdamW: decay rate of the first moment.", .min = 0.0, .max = 0.9999});
  v.field(10,
          "beta2",
          c.beta2,
          {.doc = "AdamW: decay rate of the second moment.", .min = 0.0, .max = 0.99999});
  v.field(
      11, "adam_epsilon", c.adam_epsilon, {.doc = "AdamW: added to the denominator.", .min = 0.0});
  v.field(
      12, "weight_decay", c.weight_decay, {.doc = "AdamW: decoupled weight decay.", .min = 0.0});
  v.field(
      13,
      "gradient_clip",
      c.gradient_clip,
      {.doc = "Largest global gradient norm; larger gradients are scaled down to it.", .min = 0.0});
  v.field(
      32,
      "scale_by_effective_samples",
      c.scale_by_effective_samples,
      {.doc = "Multiply the learning rate of a step by the square root of its `ratio/effective`, "
              "so that a step whose samples are too stale changes the policy less."});
}

}  // namespace detail

void describe(auto& v, AlgorithmConfig& c) {
  v.field(15,
          "name",
          c.name,
          {.doc = "Algorithm: a row of the table in docs/reference/algorithms.md. Keys of this "
                  "section that "
                  "are null take their value from the row."});
  v.field(1,
          "groups_per_update",
          c.groups_per_update,
          {.doc = "Prompts (groups) per step.", .min = 1, .max = 1 << 20});
  v.field(2,
          "responses_per_group",
          c.responses_per_group,
          {.doc = "Responses per prompt. At least 2 for a real policy without a critic.",
           .min = 1,
           .max = 4096});
  v.field(3,
          "minibatches",
          c.minibatches,
          {.doc = "Minibatches per step. The optimizer (AdamW) is applied once per minibatch. Must "
                  "divide the number of responses of a step.",
           .min = 1,
           .max = 1024});
  v.field(4,
          "clip_low",
          c.clip_low,
          {.doc = "Lower clip of the importance ratio: 1 - clip_low. From 0 to 1."});
  v.field(5,
          "clip_high",
          c.clip_high,
          {.doc = "Upper clip of the importance ratio: 1 + clip_high. At least 0."});
  v.field(6,
          "kl",
          c.kl,
          {.doc = "Coefficient of the KL (k3) to the reference in the loss. 0: no KL term, and no "
                  "reference needed.",
           .min = 0.0});
  v.field(7,
          "advantage_epsilon",
          c.advantage_epsilon,
          {.doc = "Added to the standard deviation of rewards before dividing by it.", .min = 0.0});
  detail::describe_optimizer(v, c);
  v.field(14,
          "micro_batch_tokens",
          c.micro_batch_tokens,
          {.doc = "Tokens per forward and backward pass, padding included. Lower it to save "
                  "memory; at least `model.context`.",
           .min = Tokens(16)});
  detail::describe_columns(v, c);
}

}  // namespace temper::trainer
