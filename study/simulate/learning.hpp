// What a policy learned over a run, from the mean reward of each update.
//
// Rewards of single updates are noisy. `smooth` at update i is the mean of the last kRewardWindow
// updates including i (fewer at the start). A target is reached by the first update from
// kRewardWindow on whose `smooth` is at least the target. The final reward is the mean over the
// last tenth of the updates, at least one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace temper::study {

inline constexpr std::size_t kRewardWindow = 10;

/// Reward of one update.
struct RewardPoint {
  double seconds = 0;  ///< Wall or virtual time since the run started.
  double reward = 0;   ///< Mean over the trained responses.
};

struct LearningFigures {
  double final_reward = 0;
  std::optional<std::uint64_t> steps_to_target;
  std::optional<double> seconds_to_target;
};

/// Requires: at least one update.
LearningFigures learning_figures(std::span<const RewardPoint> updates, double target);

/// The same points with smoothed rewards.
std::vector<RewardPoint> smoothed(std::span<const RewardPoint> updates);

/// Linear interpolation of a curve; none outside of its points.
std::optional<double> reward_at(std::span<const RewardPoint> curve, double seconds);

}  // namespace temper::study
