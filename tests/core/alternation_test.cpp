#include "core/alternation.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace temper {
namespace {

TEST(Alternation, TakesOneItemOfEachSetThatStillHasOne) {
  const std::vector<std::uint64_t> sizes{3, 0, 1, 2};
  const std::vector<AlternatingItem> expected{{0, 0}, {2, 0}, {3, 0}, {0, 1}, {3, 1}, {0, 2}};
  for (std::size_t position = 0; position < expected.size(); ++position)
    EXPECT_EQ(alternating_item(sizes, position), expected[position]) << position;
}

TEST(Alternation, NeedsNoTimeForLargeSets) {
  const std::vector<std::uint64_t> sizes{1, std::uint64_t{1} << 60};
  EXPECT_EQ(alternating_item(sizes, 1), (AlternatingItem{1, 0}));
  const std::uint64_t last = std::uint64_t{1} << 60;
  EXPECT_EQ(alternating_item(sizes, last), (AlternatingItem{1, last - 1}));
}

}  // namespace
}  // namespace temper
