#include "actors/policy/float_buffer.hpp"

#include "actors/policy/adamw.hpp"
#include "actors/policy/transformer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace temper::actors {
namespace {

constexpr std::int64_t kFloats = 1'000'003;  // Several parts, and a short one.

FloatBuffer ramp() {
  FloatBuffer floats(kFloats);
  for (std::int64_t i = 0; i < kFloats; ++i)
    floats.data()[i] = static_cast<float>(i % 1000) - 499.5f;
  return floats;
}

TEST(FloatBuffer, LoopsReachEveryFloat) {
  FloatBuffer floats = ramp();
  const FloatBuffer copy = floats.clone();
  floats.scale(2);
  for (std::int64_t i = 0; i < kFloats; ++i)
    ASSERT_EQ(floats.data()[i], 2 * copy.data()[i]) << i;
  floats.fill(7);
  EXPECT_TRUE(std::ranges::all_of(floats.span(), [](float x) { return x == 7; }));
}

TEST(FloatBuffer, FindsAValueThatIsNotFiniteAnywhere) {
  FloatBuffer floats = ramp();
  EXPECT_TRUE(floats.all_finite());
  for (const std::int64_t at : std::vector<std::int64_t>{0, 262'143, 262'144, kFloats - 1}) {
    const float before = floats.data()[at];
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
      floats.data()[at] = bad;
      EXPECT_FALSE(floats.all_finite()) << at;
    }
    floats.data()[at] = before;
  }
  EXPECT_TRUE(floats.all_finite());
  EXPECT_TRUE(FloatBuffer().all_finite());
}

TEST(GradientNorm, IsTheSameForAnyNumberOfThreads) {
  const FloatBuffer gradients = ramp();
  set_compute_threads(1);
  const double one = gradient_norm(gradients);
  set_compute_threads(3);
  EXPECT_EQ(gradient_norm(gradients), one);
  set_compute_threads(1);
  EXPECT_NEAR(one, 288.675 * std::sqrt(static_cast<double>(kFloats)), 1);
}

}  // namespace
}  // namespace temper::actors
