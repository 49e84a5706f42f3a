#include "rollout/server/in_flight_window.hpp"

#include <gtest/gtest.h>

namespace temper::rollout {
namespace {

actors::ServerLoad load(double cache_used, double running, double waiting, double preemptions = 0) {
  return {running, waiting, cache_used, preemptions};
}

TEST(InFlightWindow, GrowsByAQuarterWhileItIsFullAndTheCacheHasRoom) {
  InFlightWindow window(64, 1000);
  window.adjust(load(0.3, 64, 0), 64);
  EXPECT_EQ(window.size(), 80U);
  window.adjust(load(0.3, 64, 0), 10);  // It is not full, so growing would have no effect.
  EXPECT_EQ(window.size(), 80U);
}

TEST(InFlightWindow, NeverExceedsTheConcurrencyNorFallsBelowOne) {
  InFlightWindow window(64, 70);
  window.adjust(load(0.1, 64, 0), 64);
  EXPECT_EQ(window.size(), 70U);
  for (int i = 0; i < 100; ++i)
    window.adjust(load(0.99, 1, 0), 1);
  EXPECT_EQ(window.size(), 1U);
}

TEST(InFlightWindow, ShrinksWhereTheServerIsFullQueuesOrPreempts) {
  InFlightWindow full(100, 100), queued(100, 100), preempted(100, 100);
  full.adjust(load(0.95, 100, 0), 100);
  EXPECT_EQ(full.size(), 80U);
  queued.adjust(load(0.5, 10, 90), 100);
  EXPECT_EQ(queued.size(), 95U);
  preempted.adjust(load(0.5, 100, 0, 3), 100);
  EXPECT_EQ(preempted.size(), 80U);
  preempted.adjust(load(0.7, 80, 0, 3), 80);  // No new preemptions.
  EXPECT_EQ(preempted.size(), 80U);
}

}  // namespace
}  // namespace temper::rollout
