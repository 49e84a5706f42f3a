// What a policy learned over a run, from the mean reward of each update.
//
// Rewards of single updates are noisy; `smooth` at update i is the mean of the last kRewardWindow
// updates, i included (of as many as there are before that). A target is reached by the first
// update with kRewardWindow behind it whose `smooth` is at least the target. The final reward is
// the mean over the last tenth of the updates, of one at least.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace temper::study {

inline constexpr std::size_t kRewardWindow = 10;

/// One update.
struct RewardPoint {
  double seconds = 0;  ///< Since the run began, on its clock.
  double reward = 0;   ///< Mean over the responses that it trained.
};

struct Learned {
  double final_reward = 0;
  std::optional<std::uint64_t> steps_to_target;
  std::optional<double> seconds_to_target;
};

/// Requires: an update at least.
Learned learned(std::span<const RewardPoint> updates, double target);

/// The same points with smoothed rewards.
std::vector<RewardPoint> smoothed(std::span<const RewardPoint> updates);

/// Of a curve, by straight lines between its points; none before the first and after the last.
std::optional<double> reward_at(std::span<const RewardPoint> curve, double seconds);

}  // namespace temper::study
