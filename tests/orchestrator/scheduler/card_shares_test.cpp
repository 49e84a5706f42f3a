#include "orchestrator/scheduler/sharing/card_shares.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

/// Twelve engines of 2048 slots; layouts on the cards of 4, 8 and 12 of them.
CardShares twelve() {
  return CardShares({4, 8, 12}, 0.25, 2048);
}

TEST(CardShares, AsManyLeaveAsTheOthersCanDoWithout) {
  EXPECT_EQ(twelve().spare(12, 4097), 0);  // more than 0.25 * 8 * 2048 = 4096
  EXPECT_EQ(twelve().spare(12, 4096), 4);
  EXPECT_EQ(twelve().spare(12, 2049), 4);  // more than 0.25 * 4 * 2048
  EXPECT_EQ(twelve().spare(12, 2048), 8);
  EXPECT_EQ(twelve().spare(12, 1), 8);
  EXPECT_EQ(twelve().spare(12, 0), 12);
}

TEST(CardShares, ForLittleWorkTheSmallestShareLeaves) {
  EXPECT_EQ(twelve().smallest(12, 4097), 0);
  EXPECT_EQ(twelve().smallest(12, 4096), 4);
  EXPECT_EQ(twelve().smallest(12, 1), 4);
  EXPECT_EQ(twelve().smallest_by_slots(12, 16384), 4);  // 8 * 2048
  EXPECT_EQ(twelve().smallest_by_slots(12, 16385), 0);
}

TEST(CardShares, ThoseThatHaveLeftStayAwayAsLongAsTheOthersCanDoWithoutThem) {
  EXPECT_TRUE(twelve().fits(8, 12, 2048));
  EXPECT_FALSE(twelve().fits(8, 12, 2049));
  EXPECT_TRUE(twelve().fits(4, 12, 2049));
  EXPECT_FALSE(twelve().fits(12, 12, 1)) << "nobody has stayed";
}

TEST(CardShares, ABatchThatWaitsFillsTheOthersUp) {
  EXPECT_EQ(twelve().pressing(12, 2048), 8);
  EXPECT_EQ(twelve().pressing(12, 8192), 8);   // 4 * 2048
  EXPECT_EQ(twelve().pressing(12, 8193), 4);   // 8 * 2048 hold them
  EXPECT_EQ(twelve().pressing(12, 90000), 4);  // nobody holds them: they wait in queues
}

TEST(CardShares, WithoutALayoutNobodyLeaves) {
  EXPECT_EQ(CardShares({}, 1, 8).spare(4, 0), 0);
  EXPECT_EQ(CardShares({}, 1, 8).smallest(4, 0), 0);
  EXPECT_EQ(CardShares({}, 1, 8).pressing(4, 0), 0);
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
