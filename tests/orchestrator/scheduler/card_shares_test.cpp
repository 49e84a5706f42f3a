#include "orchestrator/scheduler/sharing/card_shares.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

constexpr std::int64_t kMany = 1000;  ///< Groups.

/// Twelve engines of 2048 slots, crowded with 512 responses; layouts on the cards of 4, 8 and 12 of
/// them, which 10, 20 and 30 groups fill.
CardShares twelve() {
  return CardShares({4, 8, 12}, {10, 20, 30}, {.crowded = 512, .slots = 2048});
}

TEST(CardShares, AsManyLeaveAsTheOthersCanDoWithout) {
  EXPECT_EQ(twelve().spare(12, 4097, kMany), 0);  // more than 8 * 512
  EXPECT_EQ(twelve().spare(12, 4096, kMany), 4);
  EXPECT_EQ(twelve().spare(12, 2049, kMany), 4);  // more than 4 * 512
  EXPECT_EQ(twelve().spare(12, 2048, kMany), 8);
  EXPECT_EQ(twelve().spare(12, 1, kMany), 8);
  EXPECT_EQ(twelve().spare(12, 0, kMany), 12);
}

TEST(CardShares, NoMoreLeaveThanTheGroupsFill) {
  EXPECT_EQ(twelve().spare(12, 0, 9), 0);
  EXPECT_EQ(twelve().spare(12, 0, 10), 4);
  EXPECT_EQ(twelve().spare(12, 0, 29), 8);
  EXPECT_EQ(twelve().spare(12, 0, 30), 12);
  EXPECT_EQ(twelve().part(8), 20);
}

TEST(CardShares, WithoutPartsOneGroupFillsEachShare) {
  const CardShares any({4, 8}, {}, {.crowded = 512, .slots = 2048});
  EXPECT_EQ(any.spare(12, 0, 1), 8);
  EXPECT_EQ(any.part(4), 1);
}

TEST(CardShares, TheSmallestShareLeavesAsLongAsTheOthersHaveRoom) {
  EXPECT_EQ(twelve().smallest_with_room(12, 16384), 4);  // 8 * 2048
  EXPECT_EQ(twelve().smallest_with_room(12, 16385), 0);
}

TEST(CardShares, ThoseThatHaveLeftStayAwayAsLongAsTheOthersCanDoWithoutThem) {
  EXPECT_TRUE(twelve().fits(8, 12, 2048));
  EXPECT_FALSE(twelve().fits(8, 12, 2049));
  EXPECT_TRUE(twelve().fits(4, 12, 2049));
  EXPECT_FALSE(twelve().fits(12, 12, 1)) << "nobody has stayed";
}

TEST(CardShares, ABatchThatWaitsFillsTheOthersUp) {
  EXPECT_EQ(twelve().pressing(12, 2048), 8);
  EXPECT_EQ(twelve().pressing(12, 8192), 8);  // 4 * 2048
  EXPECT_EQ(twelve().pressing(12, 8193), 4);  // 8 * 2048 hold them
}

TEST(CardShares, ABatchThatWaitsGetsAllIfNoneOfTheOthersHasRoom) {
  EXPECT_EQ(twelve().pressing(12, 16384), 4);
  EXPECT_EQ(twelve().pressing(12, 16385), 12);
}

TEST(CardShares, NoEngineIsCrowdedBeyondItsRoom) {
  const CardShares small_cache({4, 8, 12}, {}, {.crowded = 512, .slots = 100});
  EXPECT_EQ(small_cache.spare(12, 800, kMany), 4);
  EXPECT_EQ(small_cache.spare(12, 801, kMany), 0);
}

TEST(CardShares, WithoutALayoutNobodyLeaves) {
  const CardShares none({}, {}, {.crowded = 8, .slots = 8});
  EXPECT_EQ(none.spare(4, 0, kMany), 0);
  EXPECT_EQ(none.smallest_with_room(4, 0), 0);
  EXPECT_EQ(none.pressing(4, 0), 0);
}

TEST(CardShares, TheEmptiestLeaveFirstAndOfEqualOnesThoseWithOldWeights) {
  const std::vector<CardShares::Engine> engines{{ActorId(0), 5, PolicyVersion(3), false},
                                                {ActorId(1), 2, PolicyVersion(3), false},
                                                {ActorId(2), 2, PolicyVersion(2), false},
                                                {ActorId(3), 9, {}, true}};
  EXPECT_EQ(CardShares::emptiest(engines, 1), (std::vector{ActorId(3)})) << "it has left already";
  EXPECT_EQ(CardShares::emptiest(engines, 3), (std::vector{ActorId(3), ActorId(2), ActorId(1)}));
  EXPECT_EQ(CardShares::emptiest(engines, 9).size(), 4U);
}

}  // namespace
}  // namespace temper::orchestrator
