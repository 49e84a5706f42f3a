#include "actors/byte_pair/merges.hpp"

#include <gtest/gtest.h>

#include <random>

namespace temper::actors {
namespace {

using Ids = std::vector<std::int32_t>;

// Symbols a = 0, b = 1, c = 2; merges in order: a b -> 3, 3 c -> 4, b c -> 5.
Merges three() {
  Merges merges;
  merges.add(0, 1, 3);
  merges.add(3, 2, 4);
  merges.add(1, 2, 5);
  return merges;
}

TEST(Merges, JoinsThePairOfLowestRankFirst) {
  EXPECT_EQ(three().apply(Ids{0, 1, 2}), Ids{4}) << "a b before b c";
  EXPECT_EQ(three().apply(Ids{2, 1, 2}), (Ids{2, 5}));
  EXPECT_EQ(three().apply(Ids{0, 0, 1, 2, 1}), (Ids{0, 4, 1}));
  EXPECT_EQ(three().apply(Ids{}), Ids{});
  EXPECT_EQ(three().apply(Ids{9}), Ids{9});
}

TEST(Merges, JoinsTheLeftmostOfEqualPairs) {
  Merges merges;
  merges.add(0, 0, 1);
  EXPECT_EQ(merges.apply(Ids{0, 0, 0}), (Ids{1, 0}));
  EXPECT_EQ(merges.apply(Ids{0, 0, 0, 0, 0}), (Ids{1, 1, 0}));
}

/// Reference implementation: scan for the best pair, join it, repeat.
Ids naive(const std::vector<std::array<std::int32_t, 3>>& merges, Ids ids) {
  for (;;) {
    std::size_t best = merges.size();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      for (std::size_t m = 0; m < best; ++m) {
        if (merges[m][0] == ids[i] && merges[m][1] == ids[i + 1]) {
          best = m;
          at = i;
        }
      }
    }
    if (best == merges.size())
      return ids;
    ids[at] = merges[best][2];
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(Merges, MatchesTheReferenceOnRandomInput) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::array<std::int32_t, 3>> list;
    Merges merges;
    std::int32_t next = 3;
    while (list.size() < 12) {
      const auto draw = [&] {
        return static_cast<std::int32_t>(random() % static_cast<unsigned>(next));
      };
      const std::array<std::int32_t, 3> merge{draw(), draw(), next};
      const bool known = std::any_of(list.begin(), list.end(), [&](const auto& m) {
        return m[0] == merge[0] && m[1] == merge[1];
      });
      if (known)
        continue;
      ++next;
      list.push_back(merge);
      merges.add(merge[0], merge[1], merge[2]);
    }
    Ids ids;
    for (int i = 0; i < 30; ++i)
      ids.push_back(static_cast<std::int32_t>(random() % 3));
    ASSERT_EQ(merges.apply(ids), naive(list, ids)) << "round " << round;
  }
}

}  // namespace
}  // namespace temper::actors
