#include "actors/transport/clock_estimate.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace temper::actors {
namespace {

using namespace std::chrono_literals;

Heartbeat answer(Duration worker_clock, Duration to, Duration held) {
  return {.resident = {}, .sent = Time(worker_clock), .answers = HeartbeatAnswer{Time(to), held}};
}

TEST(ClockEstimate, IsEmptyUntilAHeartbeatIsAnswered) {
  ClockEstimate clock;
  EXPECT_FALSE(clock.at(Time(1s)));
  clock.note({.resident = {}, .sent = Time(1s)}, Time(1s));
  EXPECT_FALSE(clock.at(Time(1s)));
}

TEST(ClockEstimate, ContainsTheTrueOffsetForAnySplitOfTheDelay) {
  // Sent at 100 ms, held for 50 ms, received at 160 ms: 10 ms in transit. The worker is 1 h ahead.
  for (const Duration there : {0ms, 3ms, 10ms}) {
    ClockEstimate clock;
    clock.note(answer(1h + 100ms + there + 50ms, 100ms, 50ms), Time(160ms));
    const auto reading = clock.at(Time(160ms));
    ASSERT_TRUE(reading);
    EXPECT_EQ(reading->error, 5ms);
    EXPECT_LE(std::chrono::abs(reading->ahead - 1h), reading->error);
  }
}

TEST(ClockEstimate, UsesTheAnswerWithTheShortestTransit) {
  ClockEstimate clock;
  clock.note(answer(1s + 1ms, 1s, 0ms), Time(1s + 2ms));     // to within 1 ms
  clock.note(answer(2s + 80ms, 2s, 0ms), Time(2s + 100ms));  // to within 50 ms
  EXPECT_EQ(clock.at(Time(1s + 2ms))->error, 1ms);
  EXPECT_EQ(clock.at(Time(1s + 2ms))->ahead, 0ms);
}

TEST(ClockEstimate, GrowsItsErrorWithAge) {
  // 10 s at 100 ppm drift by 1 ms; then an answer with an error of 2 ms is as good as one with 1
  // ms.
  ClockEstimate clock;
  clock.note(answer(1s + 1ms, 1s, 0ms), Time(1s + 2ms));
  EXPECT_EQ(clock.at(Time(11s + 2ms))->error, 2ms);
  clock.note(answer(11s + 2ms + 7ms, 11s + 2ms, 0ms), Time(11s + 6ms));
  EXPECT_EQ(clock.at(Time(11s + 6ms))->ahead, 5ms);
}

TEST(ClockEstimate, IgnoresImpossibleAnswers) {
  constexpr Duration kMost{std::numeric_limits<Duration::rep>::max()};
  constexpr Duration kLeast{std::numeric_limits<Duration::rep>::min()};
  ClockEstimate clock;
  for (const Heartbeat& lie : {answer(1s, 2s, 0s),
                               answer(1s, 0s, 2s),
                               answer(1s, 0s, -1s),
                               answer(1s, -1s, 1s),
                               answer(1s, kMost, kMost),
                               answer(1s, kLeast, kLeast),
                               answer(kMost, 0s, 0s),
                               answer(kLeast, 0s, 0s)})
    clock.note(lie, Time(1s));
  EXPECT_FALSE(clock.at(Time(1s)));
}

}  // namespace
}  // namespace temper::actors
