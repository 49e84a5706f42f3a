#include "core/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace temper {
namespace {

std::optional<double> rho(const std::vector<double>& a, const std::vector<double>& b) {
  return rank_correlation(a, b);
}

TEST(RankCorrelation, IsOneForTheSameOrderWhateverTheDistances) {
  EXPECT_DOUBLE_EQ(*rho({1, 2, 3, 4}, {10, 11, 500, 501}), 1);
  EXPECT_DOUBLE_EQ(*rho({1, 2, 3, 4}, {9, 7, 5, -3}), -1);
}

TEST(RankCorrelation, GivesTiesTheMeanOfTheirRanks) {
  // Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4, each less 2.5: products 2.25 + 2.25, squares 4.5 and 5.
  EXPECT_DOUBLE_EQ(*rho({1, 5, 5, 9}, {1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5));
}

TEST(RankCorrelation, IsNothingWhereOneSideIsConstant) {
  EXPECT_FALSE(rho({1, 1, 1}, {1, 2, 3}));
  EXPECT_FALSE(rho({1}, {1}));
  EXPECT_FALSE(rho({1, 2}, {1, 2, 3}));
}

TEST(Median, IsTheLargerOfTwoInTheMiddleAndZeroOfNone) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 3);
  EXPECT_EQ(median({}), 0);
}

TEST(Rounded, IsTheNearestMultiple) {
  EXPECT_DOUBLE_EQ(rounded(0.12346, 1e4), 0.1235);
  EXPECT_DOUBLE_EQ(rounded(-2.26, 10), -2.3);
}

}  // namespace
}  // namespace temper
