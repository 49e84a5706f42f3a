#include "orchestrator/run/virtual/own_time.hpp"

#include "core/random.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

Time at(std::int64_t ns) {
  return Time(Duration(ns));
}

TEST(OwnTime, IsThatOfTheRunUntilSomethingHinders) {
  OwnTime time;
  EXPECT_EQ(time.own(at(7)), at(7));
  EXPECT_EQ(time.run(at(7)), at(7));
}

TEST(OwnTime, StandsAndThenGoesOn) {
  OwnTime time;
  time.hinder(at(10), OwnTime::kStands, at(25));
  EXPECT_EQ(time.own(at(24)), at(10));
  EXPECT_EQ(time.own(at(30)), at(15));
  EXPECT_EQ(time.run(at(15)), at(30));
  EXPECT_TRUE(time.stands(at(24)));
  EXPECT_FALSE(time.stands(at(25)));
}

TEST(OwnTime, WorkOnASlowCardTakesSoManyTimesAsLong) {
  OwnTime time;
  time.hinder(at(10), 3, at(40));  // 30 of the run are 10 of its own
  EXPECT_EQ(time.own(at(25)), at(15));
  EXPECT_EQ(time.run(at(15)), at(25));
  EXPECT_EQ(time.own(at(50)), at(30));
  EXPECT_EQ(time.run(at(30)), at(50));
}

TEST(OwnTime, WhoIsReplacedStandsNoMoreButStaysSlow) {
  OwnTime time;
  time.hinder(at(0), 2, at(100));
  time.hinder(at(10), OwnTime::kStands, at(90));
  EXPECT_EQ(time.own(at(20)), at(5));
  time.release(at(20));
  EXPECT_FALSE(time.stands(at(20)));
  EXPECT_EQ(time.own(at(30)), at(10));   // half as fast until 100
  EXPECT_EQ(time.own(at(110)), at(55));  // 5 + 80 / 2 + 10
}

/// Whatever hinders when: its time never goes back, nor goes faster than that of the run, and run()
/// is the first time at which own() has come so far.
TEST(OwnTime, RunIsTheFirstTimeAtWhichOwnHasComeSoFar) {
  Random random(1, "own time");
  for (int round = 0; round < 200; ++round) {
    OwnTime time;
    std::int64_t now = 0;
    for (int i = 0; i < 6; ++i) {
      now += static_cast<std::int64_t>(random.below(30));
      const auto until = at(now + static_cast<std::int64_t>(random.below(40)));
      if (random.chance(0.2))
        time.release(at(now));
      else
        time.hinder(at(now), static_cast<std::int64_t>(random.below(5)), until);
    }
    for (std::int64_t t = 1; t < 400; ++t) {
      const Duration step = time.own(at(t)) - time.own(at(t - 1));
      ASSERT_GE(step, Duration(0));
      ASSERT_LE(step, Duration(1));
      const Time first = time.run(time.own(at(t)));
      ASSERT_LE(first, at(t));
      ASSERT_EQ(time.own(first), time.own(at(t)));
      if (first > at(0)) {
        ASSERT_LT(time.own(first - Duration(1)), time.own(at(t)));
      }
    }
  }
}

}  // namespace
}  // namespace temper::orchestrator
