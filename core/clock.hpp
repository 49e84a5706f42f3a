// Time enters the program here and nowhere else. Code that decides takes Time as an argument; code
// that must read a clock takes a Clock.
#pragma once

#include "core/units.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace temper {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Never goes back.
  virtual Time now() const = 0;
};

/// The machine's monotonic clock, counted from `epoch` (nanoseconds of CLOCK_MONOTONIC). Processes
/// of one machine that share the epoch share the time line.
class RealClock final : public Clock {
 public:
  /// Counts from the moment of construction.
  RealClock();
  explicit RealClock(std::int64_t epoch_monotonic_ns) : epoch_(epoch_monotonic_ns) {}
  Time now() const override;
  std::int64_t epoch_monotonic_ns() const { return epoch_; }

 private:
  std::int64_t epoch_;
};

/// A clock that a test or a simulation sets.
class ManualClock final : public Clock {
 public:
  Time now() const override { return now_; }
  void advance(Duration d) { now_ += d; }
  void set(Time t) { now_ = t; }

 private:
  Time now_{};
};

/// Wall-clock date and time for people, e.g. "20260131-154501"; never used to order anything.
std::string calendar_stamp();

/// Callbacks ordered by (due time, order of scheduling). The owner asks next_due() how long it may
/// sleep and calls run_due(). Not thread-safe: one owner.
class Timers {
 public:
  using Handle = std::pair<Time, std::uint64_t>;

  Handle at(Time due, std::function<void()> callback);
  /// False if it already ran or was cancelled.
  bool cancel(Handle handle) { return queue_.erase(handle) > 0; }
  std::optional<Time> next_due() const;
  /// Runs everything due at or before `now`, including what those callbacks add; returns how many.
  int run_due(Time now);

 private:
  std::map<Handle, std::function<void()>> queue_;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace temper
