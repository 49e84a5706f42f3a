// The steps of a run, of which only the latest are kept.
#include "orchestrator/metrics/update_history.hpp"

#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

Update update(std::uint64_t version, double reward) {
  Update u;
  u.version = PolicyVersion(version);
  u.metrics.reward_mean = reward;
  return u;
}

TEST(UpdateHistory, KeepsTheLatestAndCountsAll) {
  UpdateHistory history(UpdateHistory::Keep::Latest);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    history.add(update(i + 1, 0));
    ASSERT_LT(history.kept().size(), 2 * UpdateHistory::kKept);
    ASSERT_EQ(history.kept().front().version.value(), history.first() + 1);
  }
  EXPECT_EQ(history.count(), 100'000U);
  EXPECT_GE(history.kept().size(), UpdateHistory::kKept);
  EXPECT_EQ(history.kept().back().version, PolicyVersion(100'000));
}

TEST(UpdateHistory, KeepsAllOfAShortRunForWhoWantsThem) {
  UpdateHistory history(UpdateHistory::Keep::All);
  for (std::uint64_t i = 0; i < 10'000; ++i)
    history.add(update(i + 1, 0));
  EXPECT_EQ(history.kept().size(), 10'000U);
}

TEST(UpdateHistory, GoesBackToAMark) {
  UpdateHistory history(UpdateHistory::Keep::Latest);
  for (std::uint64_t i = 0; i < 20; ++i)
    history.add(update(i + 1, 1));
  const auto mark = history.mark();
  for (std::uint64_t i = 20; i < 30; ++i)
    history.add(update(i + 1, 5));
  EXPECT_EQ(history.rewards().best(), 5);
  history.go_back(mark);
  EXPECT_EQ(history.count(), 20U);
  EXPECT_EQ(history.kept().back().version, PolicyVersion(20));
  EXPECT_EQ(history.rewards().best(), 1);
}

TEST(UpdateHistory, GoesBackBehindWhatIsKept) {
  UpdateHistory history(UpdateHistory::Keep::Latest);
  history.add(update(1, 0));
  const auto mark = history.mark();
  for (std::uint64_t i = 1; i < 3 * UpdateHistory::kKept; ++i)
    history.add(update(i + 1, 0));
  history.go_back(mark);
  EXPECT_EQ(history.count(), 1U);
  EXPECT_TRUE(history.kept().empty());
  history.add(update(2, 0));
  EXPECT_EQ(history.count(), 2U);
}

TEST(RewardHistory, FirstLastAndBestAreMeansOfTenInARow) {
  RewardHistory rewards;
  EXPECT_EQ(rewards.first(), std::nullopt);
  for (const double r : {1, 2, 3, 4, 5, 6})
    rewards.add(r);
  EXPECT_EQ(rewards.first(), 3.5);  // There are six.
  EXPECT_EQ(rewards.last(), 3.5);
  EXPECT_EQ(rewards.best(), 3.5);
  for (int i = 0; i < 14; ++i)
    rewards.add(10);
  for (int i = 0; i < 10; ++i)
    rewards.add(0);
  EXPECT_EQ(rewards.first(), 6.1);  // (21 + 4 * 10) / 10
  EXPECT_EQ(rewards.last(), 0);
  EXPECT_EQ(rewards.best(), 10);
}

TEST(RewardHistory, TheBestIsNeverBelowTheFirstOrTheLast) {
  Random random(7, "rewards");
  for (const int updates : {1, 4, 5, 6, 9, 10, 11, 15, 40, 300}) {
    for (int run = 0; run < 20; ++run) {
      RewardHistory rewards;
      for (int i = 0; i < updates; ++i)
        rewards.add(run == 0 ? -i : random.uniform());
      EXPECT_GE(*rewards.best() + 1e-12, *rewards.first()) << updates;
      EXPECT_GE(*rewards.best() + 1e-12, *rewards.last()) << updates;
    }
  }
}

TEST(RewardHistory, TheCurveHasFewPointsOfEquallyManyUpdates) {
  RewardHistory rewards;
  constexpr int kUpdates = 100'000;
  for (int i = 0; i < kUpdates; ++i)
    rewards.add(i);
  const auto curve = rewards.curve();
  EXPECT_LE(curve.size(), RewardHistory::kPoints);
  EXPECT_GT(curve.size(), RewardHistory::kPoints / 2);
  EXPECT_TRUE(std::is_sorted(curve.begin(), curve.end()));
  // 100,000 steps in points of 64: the first covers 0 to 63.
  EXPECT_DOUBLE_EQ(curve.front(), 31.5);
}

}  // namespace
}  // namespace temper::orchestrator
