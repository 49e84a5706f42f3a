#include "core/statistics.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace temper {
namespace {

std::optional<double> rho(const std::vector<double>& a, const std::vector<double>& b) {
  return rank_correlation(a, b);
}

TEST(RankCorrelation, IsOneForTheSameOrder) {
  EXPECT_DOUBLE_EQ(*rho({1, 2, 3, 4}, {10, 11, 500, 501}), 1);
  EXPECT_DOUBLE_EQ(*rho({1, 2, 3, 4}, {9, 7, 5, -3}), -1);
}

TEST(RankCorrelation, GivesTiesTheMeanOfTheirRanks) {
  // Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4, each less 2.5: products 2.25 + 2.25, squares 4.5 and 5.
  EXPECT_DOUBLE_EQ(*rho({1, 5, 5, 9}, {1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5));
}

TEST(RankCorrelation, IsEmptyIfOneSideIsConstant) {
  EXPECT_FALSE(rho({1, 1, 1}, {1, 2, 3}));
  EXPECT_FALSE(rho({1}, {1}));
  EXPECT_FALSE(rho({1, 2}, {1, 2, 3}));
}

TEST(Median, IsTheLargerOfTwoMiddleValues) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 3);
  EXPECT_EQ(median({}), 0);
}

/// Published values from Newcombe (1998), Statistics in Medicine 17, tables I and II: method 3 for
/// one share, method 10 for two.
TEST(WilsonInterval, MatchesPublishedExamples) {
  struct Case {
    double successes, trials, low, high;
  };
  for (const Case& c : {Case{81, 263, 0.2553, 0.3662},
                        Case{15, 148, 0.0624, 0.1605},
                        Case{0, 20, 0, 0.1611},
                        Case{1, 29, 0.0061, 0.1718}}) {
    const Interval i = wilson_interval(c.successes / c.trials, c.trials);
    EXPECT_NEAR(i.low, c.low, 5e-5) << c.successes << " of " << c.trials;
    EXPECT_NEAR(i.high, c.high, 5e-5) << c.successes << " of " << c.trials;
  }
  EXPECT_EQ(wilson_interval(0, 0).high, 1);
  EXPECT_DOUBLE_EQ(wilson_interval(1, 10).high, 1);
}

TEST(Differ, OnlyBeyondTheNoiseOfBoth) {
  // Small samples do not differ: 3 of 15 and 6 of 15.
  for (const auto& [a, b, trials] : std::vector<std::array<double, 3>>{{0.2, 0.2, 15},
                                                                       {0.2, 0.4, 15},
                                                                       {0, 0.2, 15},
                                                                       {0.5, 0.6, 100},
                                                                       {0.99, 1, 200},
                                                                       {0, 1, 1},
                                                                       {0.5, 0.51, 1000}})
    EXPECT_FALSE(differ(a, b, trials)) << a << " and " << b << " of " << trials;
  for (const auto& [a, b, trials] : std::vector<std::array<double, 3>>{
           {0, 1, 15}, {0.2, 0.8, 15}, {0.5, 0.7, 100}, {0.9, 1, 200}, {0.5, 0.51, 100000}}) {
    EXPECT_TRUE(differ(a, b, trials)) << a << " and " << b << " of " << trials;
    EXPECT_TRUE(differ(b, a, trials));
  }
}

TEST(Rounded, IsTheNearestMultiple) {
  EXPECT_DOUBLE_EQ(rounded(0.12346, 1e4), 0.1235);
  EXPECT_DOUBLE_EQ(rounded(-2.26, 10), -2.3);
}

}  // namespace
}  // namespace temper
