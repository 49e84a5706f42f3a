// Dropped copies against distributions computed term by term, and against tokens routed one by one.
#include "sim_hw/parallel/expert_capacity.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace temper::sim_hw {
namespace {

double sum_of(const ExpertLoads& loads) {
  return std::accumulate(loads.begin(), loads.end(), 0.0);
}

/// Loads in proportion to rank^-exponent, in order.
ExpertLoads zipf(std::size_t experts, double exponent) {
  ExpertLoads loads;
  for (std::size_t rank = 1; rank <= experts; ++rank)
    loads.push_back(std::pow(static_cast<double>(rank), -exponent));
  const double sum = sum_of(loads);
  for (double& load : loads)
    load /= sum;
  return loads;
}

TEST(ExpertCapacity, IsRoundedUpAsInMegatron) {
  EXPECT_EQ((ExpertCapacity{1, 1024, 8}.copies(256)), 32);
  EXPECT_EQ((ExpertCapacity{1.25, 1024, 8}.copies(256)), 40);
  EXPECT_EQ((ExpertCapacity{1.01, 1024, 8}.copies(256)), 33);
  EXPECT_EQ((ExpertCapacity{0.01, 1, 1}.copies(256)), 1);
}

TEST(ExpertCapacity, DropsWhatIsExpectedAboveIt) {
  // 4 tokens, one of two experts each: X has 1, 4, 6, 4, 1 sixteenths. Above 2: (4 + 2 * 1) / 16.
  EXPECT_DOUBLE_EQ(expected_excess(4, 0.5, 2), 6.0 / 16);
  EXPECT_DOUBLE_EQ(expected_excess(4, 0.5, 0), 2);
  EXPECT_EQ(expected_excess(4, 0.5, 4), 0);
  EXPECT_EQ(expected_excess(4, 1, 3), 1);
  EXPECT_EQ(expected_excess(4, 0, 0), 0);
  // Both experts drop 6 / 16 of 4 copies.
  EXPECT_NEAR(sum_of(processed_loads({0.5, 0.5}, {1, 4, 1})), 1 - 2 * 6.0 / 16 / 4, 1e-15);
}

TEST(ExpertCapacity, ExcessIsThatOfTheDistributionAddedTokenByToken) {
  for (const std::int64_t n : {1, 7, 300}) {
    for (const double q : {0.003, 0.2, 0.5, 0.93}) {
      std::vector<double> of(static_cast<std::size_t>(n) + 1);  // Probability of each count.
      of[0] = 1;
      for (std::int64_t token = 0; token < n; ++token) {
        for (std::size_t x = of.size() - 1; x > 0; --x)
          of[x] = of[x] * (1 - q) + of[x - 1] * q;
        of[0] *= 1 - q;
      }
      for (const std::int64_t most : {std::int64_t(0), n / 5, n / 2, n - 1}) {
        double excess = 0;
        for (std::size_t x = 0; x < of.size(); ++x)
          excess += of[x] * std::max(0.0, static_cast<double>(x) - static_cast<double>(most));
        EXPECT_NEAR(expected_excess(n, q, most), excess, 1e-11 * static_cast<double>(n))
            << n << " " << q << " " << most;
      }
    }
  }
}

TEST(ExpertCapacity, ChanceAloneDropsCopiesOfEqualLoads) {
  // 1024 tokens and 8 of 256 experts: 32 copies on average, with a deviation of 5.6; the mean
  // excess over the mean is 0.4 deviations.
  const double dropped = 1 - sum_of(processed_loads(zipf(256, 0), {1, 1024, 8}));
  EXPECT_NEAR(dropped, 0.3989 * std::sqrt(32 * (1 - 8.0 / 256)) / 32, 2e-3);
  EXPECT_LT(1 - sum_of(processed_loads(zipf(256, 0), {1, 1 << 20, 8})), 3e-3);
}

/// Routes the tokens of ranks one by one: each takes `top_k` different experts, expert e with
/// probability top_k p_e (systematic sampling in a random order), and full experts drop its copies.
struct Router {
  ExpertLoads loads;
  ExpertCapacity capacity;
  Random random{5, "router"};
  std::vector<std::int64_t> processed{};
  std::int64_t dropped = 0;

  void rank() {
    std::vector<std::size_t> order(loads.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<std::int64_t> taken(loads.size());
    const std::int64_t most = capacity.copies(std::ssize(loads));
    processed.resize(loads.size());
    for (std::int64_t token = 0; token < capacity.tokens; ++token) {
      for (std::size_t i = order.size() - 1; i > 0; --i)
        std::swap(order[i], order[random.below(i + 1)]);
      double next = random.uniform(), passed = 0;
      for (const std::size_t e : order) {
        passed += loads[e] * static_cast<double>(capacity.top_k);
        if (passed <= next)
          continue;
        next += 1;
        ++(taken[e] < most ? processed[e] : dropped);
        ++taken[e];
      }
    }
  }
};

TEST(ExpertCapacity, DropsAsManyAsTokensRoutedOneByOne) {
  for (const double exponent : {0.0, 0.35, 0.63}) {
    for (const double factor : {1.0, 1.25, 2.0}) {
      const ExpertCapacity capacity{factor, 256, 4};
      Router router{zipf(32, exponent), capacity};
      constexpr int kRanks = 400;
      for (int i = 0; i < kRanks; ++i)
        router.rank();
      const double copies = kRanks * 256 * 4;
      const ExpertLoads processed = processed_loads(router.loads, capacity);
      EXPECT_NEAR(1 - sum_of(processed), static_cast<double>(router.dropped) / copies, 0.003)
          << exponent << " " << factor;
      for (std::size_t e = 0; e < processed.size(); ++e) {
        EXPECT_NEAR(
            processed[e] * copies, static_cast<double>(router.processed[e]), 0.03 * copies / 32)
            << e;
      }
    }
  }
}

TEST(ExpertCapacity, EveryRoutedCopyIsProcessedOrDroppedAndNoneExceedsTheCapacity) {
  Random random(3, "loads");
  for (int trial = 0; trial < 50; ++trial) {
    ExpertLoads routed(16);
    for (double& load : routed)
      load = random.uniform() * random.uniform();
    const double sum = sum_of(routed);
    double before = 0;
    for (const double factor : {0.1, 1.0, 1.25, 4.0, 1e6}) {
      const ExpertCapacity capacity{factor, 64, 2};
      const ExpertLoads processed = processed_loads(routed, capacity);
      const double most = static_cast<double>(capacity.copies(16)) / (64 * 2) * sum;
      for (std::size_t e = 0; e < routed.size(); ++e) {
        EXPECT_LE(processed[e], routed[e]);
        EXPECT_LE(processed[e], most * (1 + 1e-12));
        EXPECT_GE(processed[e], 0);
      }
      EXPECT_GE(sum_of(processed), before);
      before = sum_of(processed);
    }
    EXPECT_EQ(processed_loads(routed, {1e6, 64, 2}), routed);
  }
}

TEST(ExpertCapacity, LoadsThatNoRouterProducesAreTakenAsTheyAre) {
  // A token cannot choose an expert twice, so with top_k 2 no expert has more than half.
  EXPECT_NEAR(sum_of(processed_loads({0.9, 0.1, 0, 0}, {1, 100, 2})), 0.25 + 0.1, 1e-6);
}

TEST(ExpertCapacity, ReplicasOfAnExchangeFillTheirOwn) {
  const ExpertLoads routed = zipf(64, 0.3);
  ExchangeShape exchange{.spread = 0.8, .sequences = 4, .replicas = 4};
  const auto dropped = [&](double factor) {
    Random random(1, "replicas");
    double sum = 0;
    for (int i = 0; i < 50; ++i)
      sum += 1 - sum_of(processed_in_exchange(routed, exchange, {factor, 512, 8}, random));
    return sum / 50;
  };
  const double apart = dropped(1.25);
  exchange.replicas = 1;  // All sequences on one rank.
  EXPECT_GT(apart, dropped(1.25) + 0.02);
  exchange.replicas = 4;
  Random random(1, "replicas");
  const ExpertLoads all = processed_in_exchange(routed, exchange, {1e6, 512, 8}, random);
  for (std::size_t e = 0; e < all.size(); ++e)
    EXPECT_NEAR(all[e], routed[e], 1e-12);
}

}  // namespace
}  // namespace temper::sim_hw
