#include "study/simulate/learning.hpp"

#include <gtest/gtest.h>

namespace temper::study {
namespace {

/// Update i (from 1) is done after 2 i seconds.
std::vector<RewardPoint> run(std::size_t updates, double (*reward)(std::size_t)) {
  std::vector<RewardPoint> out;
  for (std::size_t i = 1; i <= updates; ++i)
    out.push_back({2.0 * static_cast<double>(i), reward(i)});
  return out;
}

TEST(Learning, TheFinalRewardIsTheMeanOverTheLastTenth) {
  const auto late = run(30, [](std::size_t i) { return i == 30 ? 0.3 : i >= 28 ? 0.6 : 0.0; });
  EXPECT_DOUBLE_EQ(learning_figures(late, 1).final_reward, 0.5);  // (0.6 + 0.6 + 0.3) / 3
  const auto few = run(4, [](std::size_t i) { return static_cast<double>(i); });
  EXPECT_DOUBLE_EQ(learning_figures(few, 9).final_reward, 4);  // of one at least
}

TEST(Learning, ATargetIsReachedByTheMeanOfTenUpdates) {
  // 0.8 up to update 20, then 1: after 20 + k updates the mean is 0.8 + 0.02 k.
  const auto step = run(40, [](std::size_t i) { return i <= 20 ? 0.8 : 1.0; });
  const LearningFigures at = learning_figures(step, 0.89);
  EXPECT_EQ(at.steps_to_target, 25U);
  EXPECT_EQ(at.seconds_to_target, 50);
  EXPECT_EQ(learning_figures(step, 1.01).steps_to_target, std::nullopt);
  EXPECT_EQ(learning_figures(step, 1.01).seconds_to_target, std::nullopt);
}

TEST(Learning, ATargetIsNotReachedBeforeTenUpdates) {
  const auto good = run(12, [](std::size_t) { return 1.0; });
  EXPECT_EQ(learning_figures(good, 0.9).steps_to_target, 10U);
  EXPECT_EQ(learning_figures(std::span(good).first(9), 0.9).steps_to_target, std::nullopt);
}

TEST(Learning, SmoothedRewardsUseTheAvailableUpdates) {
  const auto smooth = smoothed(run(12, [](std::size_t i) { return static_cast<double>(i); }));
  EXPECT_DOUBLE_EQ(smooth[0].reward, 1);
  EXPECT_DOUBLE_EQ(smooth[1].reward, 1.5);
  EXPECT_DOUBLE_EQ(smooth[11].reward, 7.5);  // 3 to 12
  EXPECT_EQ(smooth[11].seconds, 24);
}

TEST(Learning, InterpolatesLinearlyBetweenUpdates) {
  const std::vector<RewardPoint> curve{{1, 0.2}, {3, 0.6}};
  EXPECT_EQ(reward_at(curve, 0.5), std::nullopt);
  EXPECT_EQ(reward_at(curve, 1), 0.2);
  EXPECT_DOUBLE_EQ(reward_at(curve, 2.5).value(), 0.5);
  EXPECT_EQ(reward_at(curve, 3), 0.6);
  EXPECT_EQ(reward_at(curve, 3.5), std::nullopt);
}

}  // namespace
}  // namespace temper::study
