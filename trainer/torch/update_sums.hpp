// What an update adds up over the tokens that it trains.
#pragma once

#include "trainer/engine.hpp"
#include "trainer/policy_loss.hpp"

#include <limits>
#include <span>

namespace temper::trainer {

/// Sums over tokens of an update, for the metrics.
struct UpdateSums {
  double ratio = 0, log_ratio = 0, kl = 0, clipped = 0, weight = 0, capped = 0;
  double negative_logprob = 0, tokens = 0;
  double loss = 0;  ///< Of the minibatch under way, not yet divided by its shares.
  std::int32_t passes = 0;

  /// The trained token with the largest importance ratio, for the error of a loss that is not
  /// finite.
  struct Ratio {
    double log = -std::numeric_limits<double>::infinity();
    ResponseId response;
    GroupId group;
  } largest;
};

/// Adds a response's trained tokens, each of which counts `share` in the loss.
void add_losses(std::span<const TokenLoss> losses,
                std::span<const double> current,
                std::span<const double> behaviour,
                double share,
                const TrainSample& sample,
                UpdateSums& sums);

}  // namespace temper::trainer
