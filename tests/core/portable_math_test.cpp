#include "core/portable_math.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper {
namespace {

TEST(PortableMath, IsAsExactAsTheLibrary) {
  for (double x = 1e-6; x < 1e6; x *= 1.7) {
    EXPECT_NEAR(portable_log(x), std::log(x), 1e-14 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
  for (double x = -20; x <= 20; x += 0.37)
    EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 1e-14) << x;
}

TEST(PortableMath, NormalQuantileInvertsTheDistribution) {
  EXPECT_EQ(normal_quantile(0.5), 0);
  EXPECT_NEAR(normal_quantile(0.99), kNormalQuantile99, 1e-15);
  for (const double p : {1e-12, 1e-6, 0.01, 0.075, 0.3, 0.7, 0.925, 0.999}) {
    EXPECT_NEAR(std::erfc(-normal_quantile(p) / std::sqrt(2.0)) / 2 / p, 1, 1e-13) << p;
  }
}

}  // namespace
}  // namespace temper
