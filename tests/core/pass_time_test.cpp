#include "core/pass_time.hpp"

#include <gtest/gtest.h>

#include <ctime>

namespace temper {
namespace {

using namespace std::chrono_literals;

Duration processor_time() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

TEST(PassTime, NeverReturnsEarly) {
  const RealClock clock;
  for (const Duration wanted : {Duration(0), Duration(50us), Duration(300us), Duration(5ms)}) {
    const Time until = clock.now() + wanted;
    pass_time(clock, until);
    EXPECT_GE(clock.now(), until);
  }
}

TEST(PassTime, ReturnsAtOnceAfterTheDeadline) {
  const RealClock clock;
  pass_time(clock, Time{});
  SUCCEED();
}

TEST(PassTime, UsesLittleProcessorTime) {
  const RealClock clock;
  const Duration before = processor_time();
  pass_time(clock, clock.now() + 100ms);
  EXPECT_LT(processor_time() - before, 50ms);
}

}  // namespace
}  // namespace temper
