#include "orchestrator/scheduler/dispatch/just_in_time.hpp"

#include "tests/support/times.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

constexpr Duration operator""_s(unsigned long long s) {
  return std::chrono::seconds(s);
}

/// Two groups of an update; each was trainable `latency` seconds after its dispatch; an update of
/// 100 s ended at 100 s.
JustInTime learned(std::int64_t latency) {
  JustInTime j(2);
  for (std::uint64_t g = 0; g < 2; ++g) {
    j.dispatched(GroupId(g), at(0));
    j.trainable(GroupId(g), at(latency));
  }
  j.update_begins(at(0));
  j.update_ends(at(100));
  return j;
}

TEST(JustInTime, HoldsNothingBackBeforeItHasLearned) {
  JustInTime j(2);
  EXPECT_EQ(j.due(10, at(0)), std::nullopt);
  j.dispatched(GroupId(0), at(0));
  j.trainable(GroupId(0), at(5));
  EXPECT_EQ(j.due(10, at(5)), std::nullopt) << "neither a batch of groups nor an update is known";
}

TEST(JustInTime, AGroupIsDueOneLatencyBeforeItsUpdate) {
  JustInTime j = learned(30);
  j.update_begins(at(100));
  // The next update begins at 200 s. 3 groups are ahead: a batch of it and one of the next, so the
  // asked one is trained at 300 s and due at 300 - 30.
  EXPECT_EQ(j.due(3, at(110)), at(270));
  EXPECT_EQ(j.due(1, at(110)), at(170));
  EXPECT_EQ(j.due(1, at(180)), std::nullopt) << "past: at once";
}

TEST(JustInTime, WhereGenerationIsTheLimitNothingIsHeldBack) {
  JustInTime j = learned(500);
  j.update_begins(at(100));
  for (std::int64_t ahead = 0; ahead < 8; ++ahead)
    EXPECT_EQ(j.due(ahead, at(110)), std::nullopt) << ahead;
}

TEST(JustInTime, WhileAnUpdateTakesLongerOnlyAnEventBringsTheNextGroup) {
  JustInTime j = learned(30);
  j.update_begins(at(100));
  EXPECT_EQ(j.due(2, at(199)), at(270));
  EXPECT_EQ(j.due(2, at(250)), Time::max()) << "100 - 30 s from now, at any time";
  EXPECT_EQ(j.due(1, at(250)), std::nullopt) << "the next update needs it";
  j.update_ends(at(260));
  EXPECT_EQ(j.due(2, at(260)), Time::max()) << "the next update could begin now";
}

TEST(JustInTime, ATrainerThatWaitedAlthoughGroupsWereHeldBackGetsThemEarlier) {
  JustInTime j = learned(30);
  j.update_begins(at(100));
  j.held_back();
  j.update_ends(at(200));
  j.update_begins(at(220));  // waited 20 s
  EXPECT_EQ(j.margin(), 20_s);
  EXPECT_EQ(j.due(3, at(230)), at(320 + 100 - 30 - 20));
  j.update_ends(at(320));
  j.update_begins(at(320));  // did not wait: 0.5 % of 100 s less
  EXPECT_EQ(j.margin(), 20_s - std::chrono::milliseconds(500));
}

TEST(JustInTime, ATrainerThatWaitedForOtherReasonsChangesNothing) {
  JustInTime j = learned(30);
  j.update_begins(at(150));
  EXPECT_EQ(j.margin(), Duration(0));
}

TEST(JustInTime, AGroupThatLeavesSaysNothingOfLatency) {
  JustInTime j(1);
  j.dispatched(GroupId(0), at(0));
  j.leaves(GroupId(0));
  j.trainable(GroupId(0), at(900));
  j.update_begins(at(900));
  j.update_ends(at(910));
  EXPECT_EQ(j.latency(), std::nullopt);
}

}  // namespace
}  // namespace temper::orchestrator
