#include "study/simulate/learning.hpp"

#include <algorithm>

namespace temper::study {

LearningFigures learning_figures(std::span<const RewardPoint> updates, double target) {
  LearningFigures out;
  const std::size_t tail = std::max<std::size_t>(1, updates.size() / 10);
  for (const RewardPoint& p : updates.last(tail))
    out.final_reward += p.reward / static_cast<double>(tail);
  const std::vector<RewardPoint> smooth = smoothed(updates);
  for (std::size_t i = kRewardWindow - 1; i < smooth.size(); ++i) {
    if (smooth[i].reward < target)
      continue;
    out.steps_to_target = i + 1;
    out.seconds_to_target = smooth[i].seconds;
    break;
  }
  return out;
}

std::vector<RewardPoint> smoothed(std::span<const RewardPoint> updates) {
  std::vector<RewardPoint> out;
  out.reserve(updates.size());
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const std::size_t count = std::min(i + 1, kRewardWindow);
    double sum = 0;
    for (const RewardPoint& p : updates.subspan(i + 1 - count, count))
      sum += p.reward;
    out.push_back({updates[i].seconds, sum / static_cast<double>(count)});
  }
  return out;
}

std::optional<double> reward_at(std::span<const RewardPoint> curve, double seconds) {
  const auto after = std::ranges::lower_bound(curve, seconds, {}, &RewardPoint::seconds);
  if (after == curve.end())
    return std::nullopt;
  if (after->seconds == seconds)
    return after->reward;
  if (after == curve.begin())
    return std::nullopt;
  const RewardPoint& before = *std::prev(after);
  const double part = (seconds - before.seconds) / (after->seconds - before.seconds);
  return before.reward + part * (after->reward - before.reward);
}

}  // namespace temper::study
