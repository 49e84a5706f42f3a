// Sums over the trained tokens of a step.
#pragma once

#include "trainer/engine.hpp"
#include "trainer/policy_loss.hpp"

#include <limits>
#include <span>

namespace temper::trainer {

/// Sums over the tokens of a step, for the metrics.
struct UpdateSums {
  double ratio = 0, log_ratio = 0, kl = 0, clipped = 0, weight = 0, capped = 0;
  double negative_logprob = 0, tokens = 0;
  double loss = 0;  ///< Of the current minibatch, not divided by its shares yet.
  std::int32_t passes = 0;

  /// The trained token with the largest importance ratio, for the error message of a loss that is
  /// not finite.
  struct Ratio {
    double log = -std::numeric_limits<double>::infinity();
    ResponseId response;
    GroupId group;
  } largest;
};

/// Adds the trained tokens of a response; each counts `share` in the loss.
void add_losses(std::span<const TokenLoss> losses,
                std::span<const double> current,
                std::span<const double> behaviour,
                double share,
                const TrainSample& sample,
                UpdateSums& sums);

}  // namespace temper::trainer
