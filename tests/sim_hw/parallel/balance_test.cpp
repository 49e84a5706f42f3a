// Balance of experts and samples: placements, migrations and orders of hand-made cases.
#include "sim_hw/parallel/balance_loss.hpp"
#include "sim_hw/parallel/data_balance.hpp"
#include "sim_hw/parallel/expert_balance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace temper::sim_hw {
namespace {

TEST(ExpertPlacement, OriginalPlacementIsEven) {
  EXPECT_EQ(original_placement(8, {4, 2}), (ExpertPlacement{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST(ExpertPlacement, ImbalanceIsTheBusiestDeviceOverTheMean) {
  // Devices have 0.6 and 0.4; the mean is 0.5.
  EXPECT_DOUBLE_EQ(imbalance_of({0.4, 0.2, 0.3, 0.1}, original_placement(4, {2, 1}), {2, 1}), 1.2);
}

TEST(ExpertPlacement, GreedyGoesToTheLeastLoadedNodeThenDeviceThatHasRoom) {
  // 2 nodes of 2 devices of 2 experts. By load 8 7 6 5 4 3 2 1: nodes A B B A A B B A, and inside
  // A: 8 | 5 4, then 1 beside 8; inside B: 7 | 6 3, then 2 beside 7.
  const ExpertLoads loads{8, 7, 6, 5, 4, 3, 2, 1};
  const ExpertPlacement placement = place_greedily(loads, {4, 2});
  EXPECT_EQ(placement, (ExpertPlacement{0, 2, 3, 1, 1, 3, 2, 0}));
  EXPECT_DOUBLE_EQ(imbalance_of(loads, placement, {4, 2}), 1.0);
}

TEST(ExpertLoadTraces, SumToOneKeepTheirSpreadAndComeAgainBySeed) {
  Random random(3, "loads"), again(3, "loads");
  const LoadTraceShape shape{.experts = 4096, .steps = 50, .spread = 0.5, .drift = 0.1};
  const std::vector<ExpertLoads> trace = generate_loads(shape, random);
  EXPECT_EQ(trace, generate_loads(shape, again));
  for (const ExpertLoads& loads : {trace.front(), trace.back()}) {
    EXPECT_NEAR(std::accumulate(loads.begin(), loads.end(), 0.0), 1, 1e-9);
    double sum = 0, squares = 0;
    for (const double load : loads) {
      sum += std::log(load);
      squares += std::log(load) * std::log(load);
    }
    const double mean = sum / 4096;
    EXPECT_NEAR(std::sqrt(squares / 4096 - mean * mean), 0.5, 0.02);
  }
}

/// Two experts on each of two devices; both busy ones begin on device 0.
std::vector<ExpertLoads> steady(std::size_t steps) {
  return std::vector<ExpertLoads>(steps, {0.4, 0.4, 0.1, 0.1});
}

TEST(Migration, HappensOnceWithConstantLoads) {
  MigrationRule rule;
  rule.balanced_seconds = 1;
  rule.expert_seconds = 0.1;
  const MigrationOutcome out = migrate(steady(10), {2, 1}, rule);
  EXPECT_EQ(out.migrations, 1);
  // 1.6 in the first step, which has no prediction, then 1.
  EXPECT_DOUBLE_EQ(out.without_migration, 1.6);
  EXPECT_DOUBLE_EQ(out.imbalance, (1.6 + 9 * 1.0) / 10);
  EXPECT_DOUBLE_EQ(out.seconds, 0.1 / 10);  // One expert each way, at the same time.
}

TEST(Migration, ReportsTheShareOfCopiesThatItPredictedElsewhere) {
  EXPECT_EQ(migrate(steady(5), {2, 1}, {}).prediction_error, 0);
  ExpertMigration layer(4, {2, 1});
  EXPECT_EQ(layer.step({0.4, 0.4, 0.1, 0.1}, {}).prediction_error, 0);  // Nothing was predicted.
  // 0.3 too many on each of the first two, and as many too few on the others.
  EXPECT_DOUBLE_EQ(layer.step({0.1, 0.1, 0.4, 0.4}, {}).prediction_error, 0.6);
}

TEST(Migration, IsSkippedIfItCostsMoreThanItGains) {
  MigrationRule rule;
  rule.balanced_seconds = 1;
  rule.horizon = 10;
  rule.expert_seconds = 6.1;  // 0.6 of a second gained in each of 10 steps.
  EXPECT_EQ(migrate(steady(10), {2, 1}, rule).migrations, 0);
  rule.expert_seconds = 5.9;
  EXPECT_EQ(migrate(steady(10), {2, 1}, rule).migrations, 1);
}

TEST(Migration, BringsDriftingLoadsNearBalance) {
  Random random(1, "loads");
  const std::vector<ExpertLoads> trace = generate_loads({256, 100, 0.5, 0.02}, random);
  MigrationRule rule;
  rule.balanced_seconds = 5;
  rule.expert_seconds = 0.01;
  const MigrationOutcome out = migrate(trace, {32, 4}, rule);
  EXPECT_GT(out.without_migration, 1.3);
  EXPECT_LT(out.imbalance, 1.2);
}

TEST(SampleOrder, GroupsSamplesOfSimilarCost) {
  // 2 replicas, 2 micro-batches. In original order, rows (9, 1) and (1, 9): each waits for a 9.
  const std::vector<double> costs{9, 1, 1, 9};
  const SampleReplicas shape{2, 2, 1};
  // Slowest 18, mean 10, whole samples 2 x 3^2.
  EXPECT_DOUBLE_EQ(attention_imbalance(costs, original_order(4), shape, 3), 1 + (18.0 - 10) / 18);
  const SampleOrder order = balanced_order(costs, shape);
  EXPECT_EQ(order, (SampleOrder{0, 1, 3, 2}));  // Rows (9, 9) and (1, 1).
  EXPECT_DOUBLE_EQ(attention_imbalance(costs, order, shape, 3), 1);
}

TEST(SampleOrder, BalancesGroupsThatSynchronizeOncePerStep) {
  // Replicas without shared experts: rows 8 7 | 6 5; the more expensive sample of the second row
  // goes to the cheaper replica.
  const std::vector<double> costs{5, 6, 7, 8};
  const SampleReplicas shape{2, 1, 1};
  EXPECT_EQ(balanced_order(costs, shape), (SampleOrder{3, 0, 2, 1}));
  EXPECT_DOUBLE_EQ(attention_imbalance(costs, balanced_order(costs, shape), shape, 3), 1);
}

TEST(SampleOrder, KeepsEverySample) {
  Random random(2, "documents");
  const std::vector<double> costs = pack_documents({1000, 1.2}, 96, 8192, random);
  const SampleReplicas shape{12, 4, 2};
  SampleOrder order = balanced_order(costs, shape);
  EXPECT_LT(attention_imbalance(costs, order, shape, 8192),
            attention_imbalance(costs, original_order(96), shape, 8192));
  std::ranges::sort(order);
  EXPECT_EQ(order, original_order(96));
}

TEST(Documents, FillASample) {
  Random random(4, "documents");
  // Each of 1 token: a sample costs its tokens. One longer than it: their square.
  EXPECT_EQ(pack_documents({1, 0}, 1, 64, random), std::vector<double>{64});
  EXPECT_EQ(pack_documents({100, 0}, 1, 64, random), std::vector<double>{64 * 64});
}

TEST(BalanceLoss, SeesTheSequencesOfItsScopeAndAnExchangeThoseOfItsGroup) {
  const ExchangeGroup group{2, 4, 48};
  const auto left = [&](BalanceLoss over) { return exchange_under_loss(group, over, 0.5, 4); };
  EXPECT_DOUBLE_EQ(left(BalanceLoss::MicroBatch).spread, 0.5 / (1 + 4.0 / 2));
  EXPECT_DOUBLE_EQ(left(BalanceLoss::ExpertGroup).spread, 0.5 / (1 + 4.0 / 8));
  EXPECT_DOUBLE_EQ(left(BalanceLoss::Everywhere).spread, 0.5 / (1 + 4.0 / 96));
  EXPECT_EQ(left(BalanceLoss::MicroBatch).sequences, 8);
  EXPECT_EQ(left(BalanceLoss::Everywhere).sequences, 8);
  EXPECT_EQ(exchange_under_loss({0.1, 1, 1}, BalanceLoss::MicroBatch, 0.5, 4).sequences, 1);
}

TEST(BalanceLoss, LeavesTheSpreadAtWhichGainAndLossBalance) {
  for (const double n : {1.0, 8.0, 96.0}) {
    const double left = spread_under_loss(0.5, 4, n);
    const auto cost = [&](double s) { return (s - 0.5) * (s - 0.5) + 4 * s * s / n; };
    EXPECT_LT(cost(left), cost(left * 0.99));
    EXPECT_LT(cost(left), cost(left * 1.01));
  }
  EXPECT_EQ(spread_under_loss(0.5, 0, 1), 0.5);
}

TEST(BalanceLoss, AnExchangeOfManySequencesIsAsBusyAsItsMeans) {
  const ExpertLoads means = generate_loads({64, 1, 0.2, 0}, Random(1, "means")).front();
  const ExpertGroup group{8, 1};
  const ExpertPlacement placement = original_placement(64, group);
  const auto busiest = [&](double spread, std::int64_t sequences) {
    Random random(2, "exchanges");
    return exchange_imbalance(means, placement, group, {spread, sequences}, random);
  };
  const double of_means = imbalance_of(means, placement, group);
  EXPECT_NEAR(busiest(0, 3), of_means, 1e-12);
  EXPECT_NEAR(busiest(0.5, 4000), of_means, 0.02);
  EXPECT_GT(busiest(0.5, 4), busiest(0.5, 64));
  EXPECT_GT(busiest(0.5, 4), busiest(0.25, 4));
  EXPECT_GT(busiest(0.25, 4), of_means);
}

}  // namespace
}  // namespace temper::sim_hw
