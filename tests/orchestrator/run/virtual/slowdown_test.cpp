#include "orchestrator/run/virtual/slowdown.hpp"

#include "core/random.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

Time at_ns(std::int64_t ns) {
  return Time(Duration(ns));
}

TEST(Slowdown, IsThatOfTheRunUntilSomethingHinders) {
  Slowdown time;
  EXPECT_EQ(time.own(at_ns(7)), at_ns(7));
  EXPECT_EQ(time.run(at_ns(7)), at_ns(7));
}

TEST(Slowdown, StandsAndThenGoesOn) {
  Slowdown time;
  time.slow_down(at_ns(10), Slowdown::kStops, at_ns(25));
  EXPECT_EQ(time.own(at_ns(24)), at_ns(10));
  EXPECT_EQ(time.own(at_ns(30)), at_ns(15));
  EXPECT_EQ(time.run(at_ns(15)), at_ns(30));
  EXPECT_TRUE(time.stopped(at_ns(24)));
  EXPECT_FALSE(time.stopped(at_ns(25)));
}

TEST(Slowdown, WorkOnASlowCardTakesSoManyTimesAsLong) {
  Slowdown time;
  time.slow_down(at_ns(10), 3, at_ns(40));  // 30 of the run are 10 of its own
  EXPECT_EQ(time.own(at_ns(25)), at_ns(15));
  EXPECT_EQ(time.run(at_ns(15)), at_ns(25));
  EXPECT_EQ(time.own(at_ns(50)), at_ns(30));
  EXPECT_EQ(time.run(at_ns(30)), at_ns(50));
}

TEST(Slowdown, WhoIsReplacedStandsNoMoreButStaysSlow) {
  Slowdown time;
  time.slow_down(at_ns(0), 2, at_ns(100));
  time.slow_down(at_ns(10), Slowdown::kStops, at_ns(90));
  EXPECT_EQ(time.own(at_ns(20)), at_ns(5));
  time.release(at_ns(20));
  EXPECT_FALSE(time.stopped(at_ns(20)));
  EXPECT_EQ(time.own(at_ns(30)), at_ns(10));   // half as fast until 100
  EXPECT_EQ(time.own(at_ns(110)), at_ns(55));  // 5 + 80 / 2 + 10
}

/// Whatever hinders when: its time never goes back, nor goes faster than that of the run, and run()
/// is the first time at which own() has come so far.
TEST(Slowdown, RunIsTheFirstTimeAtWhichOwnHasComeSoFar) {
  Random random(1, "own time");
  for (int round = 0; round < 200; ++round) {
    Slowdown time;
    std::int64_t now = 0;
    for (int i = 0; i < 6; ++i) {
      now += static_cast<std::int64_t>(random.below(30));
      const auto until = at_ns(now + static_cast<std::int64_t>(random.below(40)));
      if (random.chance(0.2))
        time.release(at_ns(now));
      else
        time.slow_down(at_ns(now), static_cast<std::int64_t>(random.below(5)), until);
    }
    for (std::int64_t t = 1; t < 400; ++t) {
      const Duration step = time.own(at_ns(t)) - time.own(at_ns(t - 1));
      ASSERT_GE(step, Duration(0));
      ASSERT_LE(step, Duration(1));
      const Time first = time.run(time.own(at_ns(t)));
      ASSERT_LE(first, at_ns(t));
      ASSERT_EQ(time.own(first), time.own(at_ns(t)));
      if (first > at_ns(0)) {
        ASSERT_LT(time.own(first - Duration(1)), time.own(at_ns(t)));
      }
    }
  }
}

}  // namespace
}  // namespace temper::orchestrator
