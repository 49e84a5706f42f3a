#include "actors/runtime/loading.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <ctime>
#include <thread>

namespace temper::actors {
namespace {

TEST(ProgressMeterTest, CountsNotesAndNotTheWorkOfItsOwnThread) {
  ProgressMeter meter;
  volatile std::uint64_t sum = 0;
  bool counted = true;
  for (int tries = 0; counted && tries < 100; ++tries) {  // a page may be read from disk in between
    for (std::uint64_t i = 0; i < 5'000'000; ++i)
      sum = sum + i;
    counted = meter.has_progressed();
  }
  EXPECT_FALSE(counted);
  note_progress();
  EXPECT_TRUE(meter.has_progressed());
}

TEST(ProgressMeterTest, CountsTheWorkOfOtherThreads) {
  ProgressMeter meter;
  std::thread([] {
    timespec begin{}, now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1'000'000'000 + now.tv_nsec - begin.tv_nsec <
             20'000'000);
  }).join();
  EXPECT_TRUE(meter.has_progressed());
}

}  // namespace
}  // namespace temper::actors
