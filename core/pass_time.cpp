#include "core/pass_time.hpp"

#include <ctime>

namespace temper {
namespace {

constexpr Duration kSpun = std::chrono::microseconds(200);
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

}  // namespace

void pass_time(const RealClock& clock, Time until) {
  if (until - clock.now() > kSpun) {
    const std::int64_t ns = clock.epoch_monotonic_ns() + (until - kSpun).time_since_epoch().count();
    const timespec at{.tv_sec = ns / kNsPerSecond, .tv_nsec = ns % kNsPerSecond};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) {
      if (clock.now() >= until - kSpun)
        break;  // the sleep failed; the deadline is checked below
    }
  }
  while (clock.now() < until) {
  }
}

}  // namespace temper
