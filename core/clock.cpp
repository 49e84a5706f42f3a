#include "core/clock.hpp"

#include <fmt/chrono.h>

#include <ctime>

namespace temper {
namespace {

std::int64_t monotonic_ns() {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec;
}

}  // namespace

RealClock::RealClock() : epoch_(monotonic_ns()) {}

Time RealClock::now() const {
  return Time(Duration(monotonic_ns() - epoch_));
}

std::string calendar_stamp() {
  return fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
}

Timers::Handle Timers::at(Time due, std::function<void()> callback) {
  const Handle handle{due, next_sequence_++};
  queue_.emplace(handle, std::move(callback));
  return handle;
}

std::optional<Time> Timers::next_due() const {
  if (queue_.empty())
    return std::nullopt;
  return queue_.begin()->first.first;
}

int Timers::run_due(Time now) {
  int ran = 0;
  while (!queue_.empty() && queue_.begin()->first.first <= now) {
    auto callback = std::move(queue_.begin()->second);
    queue_.erase(queue_.begin());
    callback();
    ++ran;
  }
  return ran;
}

}  // namespace temper
