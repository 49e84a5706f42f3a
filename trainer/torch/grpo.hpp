// GRPO as scalar arithmetic: what a group's rewards say of each response, and the loss of one token
// with its derivative. No tensors here; the engine feeds it log-probs and passes the derivatives to
// the network.
//
//   A_i = (R_i - mean R) / (std R + eps) over the responses of a group (population deviation)
//   r = exp(logp - logp_behaviour)
//   loss = -min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) + kl * k3
//   k3 = exp(ref - logp) - 1 - (ref - logp)      (unbiased estimate of KL(policy || reference))
// The loss of a batch is the mean over its response tokens (DAPO's token mean).
#pragma once

#include "trainer/algorithm_config.hpp"
#include "trainer/engine.hpp"

#include <optional>
#include <span>
#include <vector>

namespace temper::trainer {

/// One advantage per sample, in order; the samples of a group may lie apart. A group of equal
/// rewards has advantages 0.
std::vector<double> group_advantages(std::span<const TrainSample> batch, double epsilon);

struct TokenInputs {
  double logprob = 0;    ///< Under the weights being trained.
  double behaviour = 0;  ///< As recorded when sampled.
  double advantage = 0;
  std::optional<double> reference;  ///< Ignored if the weight of the KL is 0.
};

struct TokenLoss {
  double loss = 0;
  double d_logprob = 0;  ///< Derivative of the loss by the log-prob.
  double ratio = 1;
  double kl = 0;  ///< k3, before its weight.
  bool clipped = false;
};

TokenLoss token_loss(const TokenInputs& in, const AlgorithmConfig& config);

}  // namespace temper::trainer
