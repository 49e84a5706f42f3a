// Advantages of tokens from the values of a critic, and the critic's loss. Scalar arithmetic.
//
// The tokens of a response are those that the policy sampled, 1 to n; V(t) is the critic's value
// before token t is sampled, and V(n + 1) = 0, also for a response that was cut off.
//   r(t) = rewards from the environment at t, or after it and before the next sampled token
//            (those before the first sampled token count at it)
//          - critic.kl (b - ref)                     b, ref: log-prob of the sampler, the reference
//          + (t = n: R' - those rewards)             R': shaped_reward(), which contains them
//   d(t) = r(t) + discount V(t + 1) - V(t)
//   A(t) = d(t) + discount gae_lambda A(t + 1)       (1506.02438)
// The critic is trained towards A(t) + V(t), before A is whitened.
#pragma once

#include "trainer/algorithm.hpp"
#include "trainer/engine.hpp"

#include <span>
#include <vector>

namespace temper::trainer {

/// Of the trained tokens of one response.
struct TokenEstimates {
  std::vector<double> advantages;
  std::vector<double> returns;  ///< Targets of the critic.
  std::vector<double> values;   ///< Those of the critic before the step.
};

/// r of each trained token; empty if the policy sampled none.
std::vector<double> token_rewards(const TrainSample& sample, const Algorithm& algorithm);

/// Requires: a value per reward.
TokenEstimates gae(std::span<const double> rewards,
                   std::vector<double> values,
                   const CriticConfig& critic);

/// The estimates of a batch from the values of its trained tokens. With a deviation over the batch,
/// advantages are whitened over all its tokens: minus their mean, divided by their standard
/// deviation plus advantage_epsilon.
std::vector<TokenEstimates> token_estimates(std::span<const TrainSample> batch,
                                            std::vector<std::vector<double>> values,
                                            const Algorithm& algorithm);

/// max((v - target)^2, (clip(v, before - value_clip, before + value_clip) - target)^2) / 2
struct ValueLoss {
  double loss = 0;
  double d_value = 0;
  bool clipped = false;  ///< Whether the second term was larger.
};
ValueLoss value_loss(double value, double before, double target, const CriticConfig& critic);

/// 1 - Var(return - value) / Var(return) over the tokens; 0 if all returns are equal.
double explained_variance(std::span<const TokenEstimates> estimates);
/// Mean value over the tokens. Requires: there is one.
double mean_value(std::span<const TokenEstimates> estimates);

}  // namespace temper::trainer
