// Metrics of one optimizer step. Defined below the trainer because they also travel in a message.
#pragma once

#include "core/describe.hpp"

namespace temper::actors {

/// Means are over response tokens unless stated otherwise.
/// Copies of the trained tokens for their routed experts, with a capacity factor.
struct ExpertMetrics {
  double dropped = 0;       ///< Share of the copies that were above the capacity of their expert.
  double dropped_most = 0;  ///< The same, in the layer that drops most.
};

void describe(auto& v, ExpertMetrics& m) {
  v.field(1,
          "dropped",
          m.dropped,
          {.doc = "Share of the token copies that were above the capacity of their expert."});
  v.field(2, "dropped_most", m.dropped_most, {.doc = "The same, in the layer that drops most."});
}

struct UpdateMetrics {
  double loss = 0;
  double kl = 0;             ///< k3 estimate to the reference; 0 without one.
  double clip_fraction = 0;  ///< Share of tokens whose ratio was clipped.
  double ratio_mean = 0;     ///< Current over behavior probability, before the first minibatch.
  double entropy = 0;        ///< Estimate: mean of -log-prob under the current policy.
  double gradient_norm = 0;  ///< Before clipping, mean over minibatches.
  double reward_mean = 0;    ///< Over responses.
  std::int32_t micro_batches = 0;
  Tokens tokens;                ///< Prompt and response tokens trained on.
  double log_ratio = 0;         ///< Mean of |log(current / behavior)|, before the first minibatch.
  double behaviour_weight = 0;  ///< Mean importance weight (proximal over behavior) as used; 1 if
                                ///< none is used.
  double capped_fraction = 0;   ///< Share of tokens whose importance weight was outside its range.
  // Over the tokens of the first minibatch, before it. r is current over behavior probability.
  double effective_samples = 0;  ///< sum(r)^2 / sum(r^2), as a share of the tokens; 0: unknown.
  double mismatch = 0;           ///< Mean |log r| of tokens that the version being updated sampled.
  double stale_ratio = 0;        ///< The same of tokens that older versions sampled.
  double stale_tokens = 0;       ///< Share of tokens that older versions sampled.
  std::optional<double> learning_rate;  ///< Of the policy; absent if it was not trained.
  // Of a critic; absent without one. Values are those before the step.
  std::optional<double> critic_loss;                ///< Mean over minibatches.
  std::optional<double> critic_value_mean;          ///< Over the trained tokens of the batch.
  std::optional<double> critic_explained_variance;  ///< 1 - Var(return - value) / Var(return).
  std::optional<double> critic_clip_fraction;       ///< Share of tokens whose value was clipped.
  std::optional<ExpertMetrics> experts{};           ///< Absent without a capacity factor.
};

void describe(auto& v, UpdateMetrics& m) {
  v.field(1, "loss", m.loss, {.doc = "Loss, mean over minibatches."});
  v.field(2, "kl", m.kl, {.doc = "k3 estimate to the reference."});
  v.field(3, "clip_fraction", m.clip_fraction, {.doc = "Share of tokens clipped."});
  v.field(4, "ratio_mean", m.ratio_mean, {.doc = "Mean probability ratio before the update."});
  v.field(5, "entropy", m.entropy, {.doc = "Mean of -log-prob."});
  v.field(6, "gradient_norm", m.gradient_norm, {.doc = "Before clipping."});
  v.field(7, "reward_mean", m.reward_mean, {.doc = "Mean reward of the batch."});
  v.field(8, "micro_batches", m.micro_batches, {.doc = "Forward-backward passes."});
  v.field(9, "tokens", m.tokens, {.doc = "Prompt and response tokens."});
  v.field(10, "log_ratio", m.log_ratio, {.doc = "Mean of |log ratio| before the update."});
  v.field(11, "behaviour_weight", m.behaviour_weight, {.doc = "Mean weight of stale tokens."});
  v.field(12,
          "capped_fraction",
          m.capped_fraction,
          {.doc = "Share of tokens whose weight was outside its range."});
  v.field(13,
          "effective_samples",
          m.effective_samples,
          {.doc = "Effective sample size of the importance ratios before the update, as a share of "
                  "the tokens. 0: unknown."});
  v.field(14,
          "mismatch",
          m.mismatch,
          {.doc = "Mean of |log ratio| of tokens that the version being updated sampled."});
  v.field(15,
          "stale_ratio",
          m.stale_ratio,
          {.doc = "Mean of |log ratio| of tokens that older versions sampled."});
  v.field(16, "stale_tokens", m.stale_tokens, {.doc = "Share of tokens of older versions."});
  v.field(17,
          "critic_loss",
          m.critic_loss,
          {.doc = "Loss of the critic, mean over minibatches; absent without a critic, as the "
                  "following."});
  v.field(18,
          "critic_value_mean",
          m.critic_value_mean,
          {.doc = "Mean value of the tokens before the update."});
  v.field(19,
          "critic_explained_variance",
          m.critic_explained_variance,
          {.doc = "1 - Var(return - value) / Var(return) of the tokens before the update. 0 if all "
                  "returns are equal."});
  v.field(20,
          "critic_clip_fraction",
          m.critic_clip_fraction,
          {.doc = "Share of tokens whose value was clipped."});
  v.field(21,
          "learning_rate",
          m.learning_rate,
          {.doc = "Learning rate of the policy in this step; absent if it was not trained."});
  v.field(22,
          "experts",
          m.experts,
          {.doc = "Copies of tokens for routed experts; absent without a capacity factor.",
           .left_out_if_empty = true});
}

}  // namespace temper::actors
