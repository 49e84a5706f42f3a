#include "core/nearest_name.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace temper {
namespace {

TEST(NearestName, DistanceCountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("replicass", "replicas"), 1U);
  EXPECT_EQ(edit_distance("setps", "steps"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(NearestName, IsTheClosestIfCloseEnough) {
  const std::vector<std::string> names{"seed", "steps", "staleness", "kl"};
  EXPECT_EQ(nearest_name("step", names), "steps");
  EXPECT_EQ(nearest_name("stalenes", names), "staleness");
  EXPECT_EQ(nearest_name("hardware", names), std::nullopt);
  EXPECT_EQ(nearest_name("xy", names), std::nullopt) << "nothing in common with `kl`";
  EXPECT_EQ(nearest_name(std::string(100000, 'x'), names), std::nullopt);
}

}  // namespace
}  // namespace temper
