#include "trainer/advantages.hpp"

#include "core/random.hpp"
#include "tests/support/reference_loss.hpp"

#include <gtest/gtest.h>

namespace temper::trainer {
namespace {

std::vector<TrainSample> samples(const std::vector<tests::ReferenceReward>& list) {
  std::vector<TrainSample> out(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    out[i].group = GroupId(static_cast<std::uint64_t>(list[i].group));
    out[i].reward = list[i].reward;
  }
  return out;
}

TEST(Advantages, AreThoseOfTheReferenceAtEveryLevel) {
  Random random(3, "advantages");
  for (int round = 0; round < 20; ++round) {
    std::vector<tests::ReferenceReward> list;
    // Groups of unequal sizes that are not adjacent; one with equal rewards, one with a single
    // response.
    for (int i = 0; i < 20; ++i)
      list.push_back({static_cast<int>(random.below(4)), random.normal()});
    list.insert(list.begin() + 7, {{4, 0.5}, {5, 1.0}, {4, 0.5}});
    for (const auto& [mean, mean_name] : EnumNames<AdvantageMean>::value) {
      if (mean == AdvantageMean::Critic)
        continue;  // gae_test.cpp
      for (const auto& [std, std_name] : EnumNames<AdvantageStd>::value) {
        Algorithm a;
        a.advantage_mean = mean;
        a.advantage_std = std;
        a.advantage_epsilon = 1e-3;
        auto expected = tests::reference_advantages(list, a);
        if (mean == AdvantageMean::LeaveOneOut)
          expected[8] = 0;  // Alone in its group.
        const auto found = advantages(samples(list), a);
        for (std::size_t i = 0; i < list.size(); ++i)
          ASSERT_NEAR(found[i], expected[i], 1e-9) << mean_name << " " << std_name << " " << i;
      }
    }
  }
}

TEST(Advantages, AreDeviationsOverTheGroup) {
  Algorithm a;
  a.advantage_epsilon = 0;
  const auto found = advantages(samples({{1, 1}, {2, 1}, {1, 0}, {2, 1}, {1, 0.5}}), a);
  // Group 1: mean 0.5, deviation sqrt((0.25 + 0.25 + 0) / 3) = 0.408.
  EXPECT_NEAR(found[0], 0.5 / std::sqrt(0.5 / 3), 1e-12);
  EXPECT_NEAR(found[2], -0.5 / std::sqrt(0.5 / 3), 1e-12);
  EXPECT_EQ(found[4], 0);
  EXPECT_EQ(found[1], 0) << "equal rewards give 0, even without an epsilon";
}

TEST(Advantages, LeaveOneOutComparesWithTheOthers) {
  Algorithm a;
  a.advantage_mean = AdvantageMean::LeaveOneOut;
  a.advantage_std = AdvantageStd::None;
  const auto found = advantages(samples({{1, 1}, {1, 0}, {1, 0}}), a);
  EXPECT_NEAR(found[0], 1, 1e-12);
  EXPECT_NEAR(found[1], -0.5, 1e-12);
}

TEST(ShapedReward, FallsOverTheBuffer) {
  Algorithm a;
  a.longest_response = Tokens(100);
  a.overlong_buffer = Tokens(20);
  a.overlong_penalty = 0.5;
  EXPECT_EQ(shaped_reward(1, Tokens(10), a), 1);
  EXPECT_EQ(shaped_reward(1, Tokens(80), a), 1);
  EXPECT_NEAR(shaped_reward(1, Tokens(90), a), 0.75, 1e-12);
  EXPECT_NEAR(shaped_reward(0, Tokens(100), a), -0.5, 1e-12);
  a.overlong_buffer = Tokens(0);
  EXPECT_EQ(shaped_reward(1, Tokens(100), a), 1);
}

TEST(ShapedReward, IsWhatAdvantagesAreMadeOf) {
  Algorithm a;
  a.advantage_std = AdvantageStd::None;
  a.longest_response = Tokens(10);
  a.overlong_buffer = Tokens(4);
  auto list = samples({{1, 1}, {1, 1}});
  list[1].response.resize(8);  // Half of the buffer: 0.5 less.
  const auto found = advantages(list, a);
  EXPECT_NEAR(found[0], 0.25, 1e-12);
  EXPECT_NEAR(found[1], -0.25, 1e-12);
}

}  // namespace
}  // namespace temper::trainer
