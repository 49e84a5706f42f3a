// The learning rate of each step, as a share of the configured one.
#include "trainer/learning_rate.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace temper::trainer {
namespace {

std::vector<double> first_six(const LearningRateSchedule& schedule) {
  std::vector<double> shares;
  for (std::uint64_t updates = 0; updates < 6; ++updates)
    shares.push_back(share_at(schedule, updates));
  return shares;
}

using Shares = std::vector<double>;

TEST(LearningRateSchedule, IsConstantByDefault) {
  EXPECT_EQ(first_six({}), Shares({1, 1, 1, 1, 1, 1}));
}

TEST(LearningRateSchedule, RisesInEqualPartsDuringTheWarmUp) {
  LearningRateSchedule schedule;
  schedule.warm_up_steps = 4;
  EXPECT_EQ(first_six(schedule), Shares({0.25, 0.5, 0.75, 1, 1, 1}));
}

TEST(LearningRateSchedule, TheWarmUpFollowsStepsThatTrainOtherWeights) {
  LearningRateSchedule schedule{.warm_up_steps = 2, .decay = Decay::Linear, .decay_steps = 6};
  Shares shares;
  for (std::uint64_t updates = 2; updates < 7; ++updates)
    shares.push_back(share_at(schedule, updates, 2));
  EXPECT_EQ(shares, Shares({0.5, 1, 1, 0.5, 0}));
}

TEST(LearningRateSchedule, FallsToItsEndAndStaysThere) {
  EXPECT_EQ(first_six({.decay = Decay::Linear, .decay_steps = 4}),
            Shares({1, 0.75, 0.5, 0.25, 0, 0}));
  EXPECT_EQ(first_six({.decay = Decay::Linear, .decay_steps = 2, .end = 0.5}),
            Shares({1, 0.75, 0.5, 0.5, 0.5, 0.5}));
}

TEST(LearningRateSchedule, FallsAlongACosine) {
  const Shares shares = first_six({.decay = Decay::Cosine, .decay_steps = 4});
  EXPECT_EQ(shares[0], 1);
  EXPECT_NEAR(shares[1], 0.85355339, 1e-8);
  EXPECT_NEAR(shares[2], 0.5, 1e-8);
  EXPECT_NEAR(shares[4], 0, 1e-8);
}

TEST(LearningRateSchedule, FallsAfterTheWarmUp) {
  EXPECT_EQ(first_six({.warm_up_steps = 2, .decay = Decay::Linear, .decay_steps = 6}),
            Shares({0.5, 1, 1, 0.75, 0.5, 0.25}));
}

TEST(LearningRateSchedule, EndsAtOnceIfTheDecayEndsWithTheWarmUp) {
  EXPECT_EQ(first_six({.warm_up_steps = 2, .decay = Decay::Linear, .decay_steps = 2, .end = 0.1}),
            Shares({0.5, 1, 0.1, 0.1, 0.1, 0.1}));
}

}  // namespace
}  // namespace temper::trainer
