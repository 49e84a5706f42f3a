#include "actors/simulation/simulated_reward.hpp"
#include "tests/support/simulated_drive.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace temper::actors {
namespace {

using testing::Driven;

SimulationSettings with_pool(std::int32_t pool, Duration mean = std::chrono::seconds(1)) {
  SimulationSettings s;
  s.config.reward = {.mean = mean, .p99_over_median = 4, .pool = pool};
  s.config.report_every = std::chrono::seconds(5);
  return s;
}

CountedJudge lease(std::uint64_t id, std::uint64_t first, std::uint64_t count) {
  CountedJudge work{.lease = LeaseId(id), .items = {}};
  for (std::uint64_t i = 0; i < count; ++i)
    work.items.push_back({ResponseId(first + i), Tokens(100)});
  return work;
}

TEST(RewardModel, LatencyHasTheConfiguredMeanAndSpread) {
  const RewardModel model(
      {.mean = std::chrono::seconds(2), .p99_over_median = 4, .pool = 1}, 7, 16);
  std::vector<double> all;
  double sum = 0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    all.push_back(seconds(model.latency(ResponseId(i))));
    sum += all.back();
  }
  std::ranges::sort(all);
  EXPECT_NEAR(sum / 100000, 2, 0.02);
  EXPECT_NEAR(all[99000] / all[50000], 4, 0.1);
}

TEST(RewardModel, GroupsDifferInTheirRewardProbability) {
  const RewardModel model({}, 7, 16);
  std::map<int, int> groups_with;
  for (std::uint64_t g = 0; g < 2000; ++g) {
    int ones = 0;
    for (std::uint64_t i = 0; i < 16; ++i)
      ones += model.reward(ResponseId(g * 16 + i)) > 0 ? 1 : 0;
    ++groups_with[ones];
  }
  // With one probability for all, fewer than 2000 * 2^-16 groups would be all right or all wrong.
  EXPECT_GT(groups_with[0] + groups_with[16], 20);
  EXPECT_GT(groups_with[8], 100);
}

TEST(RewardModel, RewardDependsOnlyOnSeedAndResponse) {
  const RewardModel a({}, 7, 16), same({}, 7, 16), other({}, 8, 16);
  int different = 0;
  for (std::uint64_t i = 500; i-- > 0;) {
    EXPECT_EQ(a.reward(ResponseId(i)), same.reward(ResponseId(i)));
    EXPECT_EQ(a.latency(ResponseId(i)), same.latency(ResponseId(i)));
    different += a.reward(ResponseId(i)) != other.reward(ResponseId(i)) ? 1 : 0;
  }
  EXPECT_GT(different, 100);
}

TEST(SimulatedReward, AnswersALeaseWhenItsSlowestResponseIsJudged) {
  SimulatedReward reward(with_pool(8), 7, 4);
  Driven d(reward);
  ASSERT_TRUE(d.start());
  ASSERT_TRUE(d.send(lease(1, 0, 4)));
  ASSERT_TRUE(d.run());
  const RewardModel model(with_pool(8).config.reward, 7, 4);
  Duration slowest{};
  for (std::uint64_t i = 0; i < 4; ++i)
    slowest = std::max(slowest, model.latency(ResponseId(i)));
  const auto judged = d.all<Judged>();
  ASSERT_EQ(judged.size(), 1U);
  EXPECT_EQ(judged[0].first, Time(slowest));
  ASSERT_EQ(judged[0].second.items.size(), 4U);
  for (std::uint64_t i = 0; i < 4; ++i)
    EXPECT_EQ(judged[0].second.items[i].reward, model.reward(ResponseId(i)));
}

TEST(SimulatedReward, OneWorkerJudgesResponsesSequentially) {
  SimulatedReward reward(with_pool(1), 7, 4);
  Driven d(reward);
  ASSERT_TRUE(d.start());
  ASSERT_TRUE(d.send(lease(1, 0, 3)));
  ASSERT_TRUE(d.send(lease(2, 3, 2)));
  ASSERT_TRUE(d.run());
  const RewardModel model(with_pool(1).config.reward, 7, 4);
  Time end{};
  for (std::uint64_t i = 0; i < 3; ++i)
    end += model.latency(ResponseId(i));
  const Time first = end;
  for (std::uint64_t i = 3; i < 5; ++i)
    end += model.latency(ResponseId(i));
  const auto judged = d.all<Judged>();
  ASSERT_EQ(judged.size(), 2U);
  EXPECT_EQ(judged[0].first, first);
  EXPECT_EQ(judged[1].first, end);
  ASSERT_EQ(d.spans().size(), 2U);  // Of one stretch of work, reported in two messages.
  EXPECT_EQ(d.spans().front().begin, Time());
  EXPECT_EQ(d.spans().front().end, d.spans().back().begin);
  EXPECT_EQ(d.spans().back().end, end);
}

TEST(SimulatedReward, AnswersEveryLeaseOnceInOrderOfTime) {
  SimulatedReward reward(with_pool(16), 3, 8);
  Driven d(reward);
  ASSERT_TRUE(d.start());
  for (std::uint64_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(d.send(lease(i, i * 8, 1 + i % 8)));
    ASSERT_TRUE(d.run_until(d.now() + std::chrono::milliseconds(i % 7 == 0 ? 3000 : 100)));
  }
  ASSERT_TRUE(d.run());
  std::set<LeaseId> answered;
  Time last{};
  for (const auto& [at, judged] : d.all<Judged>()) {
    EXPECT_GE(at, last);
    last = at;
    EXPECT_TRUE(answered.insert(judged.lease).second);
    EXPECT_EQ(judged.items.size(), 1 + judged.lease.value() % 8);
  }
  EXPECT_EQ(answered.size(), 200U);
}

TEST(SimulatedReward, IsBusyWhileAnyWorkerIs) {
  SimulatedReward reward(with_pool(4), 3, 8);
  Driven d(reward);
  ASSERT_TRUE(d.start());
  const RewardModel model(with_pool(4).config.reward, 3, 8);
  // Pauses are long enough for the pool to run dry in between.
  Duration expected{};
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(d.send(lease(i, i, 1)));
    expected += model.latency(ResponseId(i));
    ASSERT_TRUE(d.run_until(d.now() + std::chrono::seconds(60)));
  }
  Duration busy{};
  Time last{};
  for (const Span& span : d.spans()) {
    EXPECT_GE(span.begin, last);
    last = span.end;
    busy += span.end - span.begin;
  }
  EXPECT_EQ(busy, expected);
}

TEST(SimulatedReward, AnInstantVerifierAnswersAtOnce) {
  SimulatedReward reward(with_pool(1, Duration(0)), 3, 8);
  Driven d(reward);
  ASSERT_TRUE(d.start());
  ASSERT_TRUE(d.send(lease(1, 0, 8)));
  EXPECT_EQ(d.all<Judged>().size(), 1U);
  EXPECT_TRUE(d.spans().empty());
}

TEST(SimulatedReward, EqualCallsGiveEqualMessages) {
  const auto trace = [] {
    SimulatedReward reward(with_pool(5), 11, 8);
    Driven d(reward);
    EXPECT_TRUE(d.start());
    for (std::uint64_t i = 0; i < 50; ++i)
      EXPECT_TRUE(d.send(lease(i, i * 8, 8)));
    EXPECT_TRUE(d.run());
    return d.trace();
  };
  EXPECT_EQ(trace(), trace());
}

}  // namespace
}  // namespace temper::actors
