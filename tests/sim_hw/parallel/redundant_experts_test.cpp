// Zipf loads and redundant experts, compared with definitions, an exhaustive search and published
// placements.
#include "sim_hw/parallel/expert_balance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace temper::sim_hw {
namespace {

/// Imbalance of `loads` when each expert has the slots `slots` on the devices `devices`, computed
/// expert by expert.
double naive_imbalance(const ExpertLoads& loads,
                       const ExpertSlots& slots,
                       const ExpertPlacement& devices,
                       std::int64_t count) {
  std::vector<double> busy(static_cast<std::size_t>(count));
  for (std::size_t e = 0; e < loads.size(); ++e) {
    const auto copies = std::ranges::count(slots, e);
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      if (slots[slot] == e)
        busy[static_cast<std::size_t>(devices[slot])] += loads[e] / static_cast<double>(copies);
    }
  }
  const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / static_cast<double>(count);
  return *std::ranges::max_element(busy) / mean;
}

/// The imbalance of the slots that the implementation chooses and places.
double placed_imbalance(const ExpertLoads& loads, const ExpertGroup& group) {
  const ExpertSlots slots = replicate(loads, group.redundant);
  const ExpertLoads each = loads_of_slots(loads, slots);
  const ExpertPlacement devices = place_greedily(each, group);
  const double imbalance = imbalance_of(each, devices, group);
  EXPECT_NEAR(imbalance, naive_imbalance(loads, slots, devices, group.devices), 1e-12);
  // Every expert has a slot, and every device the same number of slots.
  for (std::size_t e = 0; e < loads.size(); ++e)
    EXPECT_GE(std::ranges::count(slots, e), 1);
  const auto room = static_cast<std::int64_t>(slots.size()) / group.devices;
  for (std::int64_t d = 0; d < group.devices; ++d)
    EXPECT_EQ(std::ranges::count(devices, d), room);
  return imbalance;
}

/// The smallest imbalance of any choice of copies on any devices with room.
double best_imbalance(const ExpertLoads& loads, const ExpertGroup& group) {
  const std::size_t slots = loads.size() + static_cast<std::size_t>(group.redundant);
  const auto room = static_cast<std::int64_t>(slots) / group.devices;
  ExpertSlots chosen(loads.size());
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  chosen.resize(slots);
  ExpertPlacement devices(slots);
  double best = 1e300;
  const std::function<void(std::size_t)> place = [&](std::size_t slot) {
    if (slot == slots) {
      best = std::min(best, naive_imbalance(loads, chosen, devices, group.devices));
      return;
    }
    for (std::int64_t d = 0; d < group.devices; ++d) {
      if (std::count(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(slot), d) ==
          room)
        continue;
      devices[slot] = d;
      place(slot + 1);
    }
  };
  const std::function<void(std::size_t, std::size_t)> choose = [&](std::size_t slot,
                                                                   std::size_t least) {
    if (slot == slots)
      return place(0);
    for (std::size_t e = least; e < loads.size(); ++e) {
      chosen[slot] = e;
      choose(slot + 1, e);
    }
  };
  choose(loads.size(), 0);
  return best;
}

ExpertLoads random_loads(std::size_t experts, double spread, Random& random) {
  ExpertLoads loads(experts);
  for (double& load : loads)
    load = std::exp(spread * random.normal());
  return loads;
}

TEST(ZipfLoads, AreTheSamePowersOfTheRankInEveryStep) {
  const LoadTraceShape shape{.experts = 64, .steps = 40, .drift = 0.1, .exponent = 0.7};
  const std::vector<ExpertLoads> trace = generate_loads(shape, Random(3, "loads"));
  double sum = 0;
  for (int rank = 1; rank <= 64; ++rank)
    sum += std::pow(rank, -0.7);
  std::size_t moved = 0;
  for (std::size_t step = 0; step < trace.size(); ++step) {
    ExpertLoads ranked = trace[step];
    std::ranges::sort(ranked, std::ranges::greater());
    for (std::size_t i = 0; i < 64; ++i)
      ASSERT_NEAR(ranked[i], std::pow(static_cast<double>(i + 1), -0.7) / sum, 1e-12);
    moved += step > 0 && trace[step] != trace[step - 1];
  }
  EXPECT_GT(moved, 30U);
  EXPECT_EQ(trace, generate_loads(shape, Random(3, "loads")));
  EXPECT_NE(trace.front(), generate_loads(shape, Random(4, "loads")).front());
}

TEST(ZipfLoads, StayWithoutDriftAndAreEqualWithoutAnExponent) {
  LoadTraceShape shape{.experts = 8, .steps = 5, .drift = 0, .exponent = 1.0};
  const std::vector<ExpertLoads> still = generate_loads(shape, Random(1, "loads"));
  EXPECT_EQ(still.front(), still.back());
  shape.exponent = 0;
  EXPECT_EQ(generate_loads(shape, Random(1, "loads")).front(), ExpertLoads(8, 1.0 / 8));
}

TEST(ZipfLoads, RanksOfCloseStepsAreCloserThanThoseOfDistantOnes) {
  const LoadTraceShape shape{.experts = 256, .steps = 101, .drift = 0.02, .exponent = 0.6};
  const std::vector<ExpertLoads> trace = generate_loads(shape, Random(1, "loads"));
  const auto elsewhere = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t e = 0; e < 256; ++e)
      sum += std::abs(trace[a][e] - trace[b][e]) / 2;
    return sum;
  };
  EXPECT_GT(elsewhere(0, 1), 0);
  EXPECT_LT(elsewhere(0, 1), 0.5 * elsewhere(0, 100));
}

TEST(RedundantExperts, GoToTheExpertWithTheMostLoadPerSlot) {
  // 9 | 5 | 2: a second slot of the first (4.5 each), of the second (2.5), a third of the first
  // (3).
  EXPECT_EQ(replicate({9, 5, 2}, 1), (ExpertSlots{0, 1, 2, 0}));
  EXPECT_EQ(replicate({9, 5, 2}, 3), (ExpertSlots{0, 1, 2, 0, 1, 0}));
  EXPECT_EQ(loads_of_slots({9, 5, 2}, {0, 1, 2, 0, 1, 0}), (ExpertLoads{3, 2.5, 2, 3, 2.5, 3}));
}

TEST(RedundantExperts, AreAtLeastAsBalancedAsTheExampleOfEplb) {
  // The example of github.com/deepseek-ai/EPLB: two layers of 12 experts, 16 slots on 8 devices,
  // placed in two nodes by groups of experts.
  const std::vector<ExpertLoads> layers{{90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86},
                                        {20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27}};
  const std::vector<ExpertSlots> published{{5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1},
                                           {7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1}};
  const ExpertPlacement in_order = original_placement(16, {8, 1});
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const double theirs = naive_imbalance(layers[layer], published[layer], in_order, 8);
    const double ours = placed_imbalance(layers[layer], {8, 1, 4});
    EXPECT_LE(ours, theirs);
    EXPECT_GT(ours, 0.8 * theirs);
  }
}

TEST(RedundantExperts, AreNearTheBestOfAllPlacementsOfSmallCases) {
  Random random(1, "small cases");
  double excess = 0;
  int cases = 0;
  for (const auto& [experts, group] : std::vector<std::pair<std::size_t, ExpertGroup>>{
           {3, {2, 1, 1}}, {4, {2, 1, 2}}, {4, {3, 1, 2}}, {5, {2, 1, 1}}, {4, {2, 2, 2}}}) {
    for (int i = 0; i < 40; ++i) {
      const ExpertLoads loads = random_loads(experts, 0.2 + 0.05 * i, random);
      const double best = best_imbalance(loads, group);
      const double placed = placed_imbalance(loads, group);
      EXPECT_GE(best, 1 - 1e-12);
      EXPECT_GE(placed, best - 1e-12);
      EXPECT_LE(placed, 4.0 / 3 * best);
      excess += placed / best - 1;
      ++cases;
    }
  }
  EXPECT_LT(excess / cases, 0.05);
}

TEST(RedundantExperts, LeaveTheBusiestDeviceNoBusierThanWithout) {
  Random random(2, "larger cases");
  for (int i = 0; i < 300; ++i) {
    const ExpertLoads loads = random_loads(64, 0.1 + 0.01 * i, random);
    const double without = placed_imbalance(loads, {16, 2, 0});
    for (const std::int64_t redundant : {16, 32, 64}) {
      const double with = placed_imbalance(loads, {16, 2, redundant});
      EXPECT_GE(with, 1 - 1e-12);
      // Where little is left to gain, greedy packing can lose up to 5 %.
      EXPECT_LE(with, std::max(without, 1.05)) << redundant;
    }
    // And than with the copies that an engine begins with, in order.
    const ExpertSlots blind = replicate(ExpertLoads(64, 1.0), 16);
    EXPECT_LE(placed_imbalance(loads, {16, 2, 16}),
              naive_imbalance(loads, blind, original_placement(80, {16, 2}), 16));
  }
}

TEST(RedundantExperts, AMigrationMovesWhatADeviceDidNotHave) {
  // Devices have experts 0 1 | 2 0: the copy begins as one of the first expert. With all load on
  // the third, its two slots are on both devices, and device 0 receives one.
  ExpertMigration layer(3, {2, 1, 1});
  MigrationRule rule;
  rule.balanced_seconds = 1;
  rule.expert_seconds = 0.25;
  EXPECT_DOUBLE_EQ(layer.step({0.1, 0.1, 0.8}, rule).imbalance, 1.7);  // 0.05 + 0.8 of 0.5.
  const MigrationOutcome next = layer.step({0.1, 0.1, 0.8}, rule);
  EXPECT_EQ(next.migrations, 1);
  EXPECT_DOUBLE_EQ(next.imbalance, 1);
  EXPECT_DOUBLE_EQ(next.without_migration, 1.7);
  EXPECT_DOUBLE_EQ(next.seconds, 0.25);
}

TEST(RedundantExperts, PredictTheMeasuredBalanceOfDeepSeekR1) {
  // TensorRT-LLM, examples/ep_load_balancer: 256 experts in order on 32 devices have 2.564 times
  // the mean load on the busiest one; 288 slots on 36 devices have 1.115, which includes the chance
  // of 1024 copies per device. Zipf loads of exponent 0.63 have the first figure, nothing is fitted
  // to the second.
  LoadWalk layers({.experts = 256, .drift = 1, .exponent = 0.63}, Random(1, "layers"));
  double in_order = 0, placed = 0;
  for (int layer = 0; layer < 58; ++layer) {
    const ExpertLoads loads = layers.next();
    in_order += imbalance_of(loads, original_placement(256, {32, 1}), {32, 1}) / 58;
    placed += placed_imbalance(loads, {36, 1, 32}) / 58;
  }
  EXPECT_NEAR(in_order, 2.564, 0.15);
  EXPECT_LT(placed, 1.01);
  // Of 36 Poisson counts with mean 1024, the largest has about 1 + 2.1 / sqrt(1024).
  EXPECT_GT(placed + 2.1 / 32, 1.06);
}

}  // namespace
}  // namespace temper::sim_hw
