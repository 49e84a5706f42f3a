// Sums over the trained tokens of a step.
#pragma once

#include "trainer/engine.hpp"
#include "trainer/policy_loss.hpp"

#include <limits>
#include <span>

namespace temper::trainer {

/// Sums over the tokens of a step, for the metrics.
struct UpdateSums {
  double ratio = 0, squared_ratio = 0, log_ratio = 0, stale_log_ratio = 0, stale = 0, kl = 0;
  double clipped = 0, weight = 0, capped = 0;
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

/// Sets the metrics about importance ratios. Requires: the sums are those of the first minibatch.
void set_ratio_metrics(const UpdateSums& sums, UpdateMetrics& metrics);

/// Adds the trained tokens of a response; each counts `share` in the loss.
void add_losses(std::span<const TokenLoss> losses,
                std::span<const double> current,
                std::span<const double> behaviour,
                double share,
                const TrainSample& sample,
                UpdateSums& sums);

}  // namespace temper::trainer
