// The only source of time in the program. Code that makes decisions takes Time as an argument; code
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
  /// Monotonic: never decreases.
  virtual Time now() const = 0;
};

/// The machine's monotonic clock, relative to `epoch` (nanoseconds of CLOCK_MONOTONIC). Processes
/// on one machine that share the epoch share the time line.
class RealClock final : public Clock {
 public:
  /// The epoch is the time of construction.
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

/// Local date and time for people, such as "20260131-154501"; never used to order events.
std::string calendar_stamp();

/// Callbacks ordered by (due time, order of scheduling). The owner sleeps until next_due() and then
/// calls run_due(). Not thread-safe.
class Timers {
 public:
  using Handle = std::pair<Time, std::uint64_t>;

  Handle at(Time due, std::function<void()> callback);
  /// Returns false if the callback already ran or was canceled.
  bool cancel(Handle handle) { return queue_.erase(handle) > 0; }
  std::optional<Time> next_due() const;
  /// Runs every callback due at or before `now`, including those that these callbacks add. Returns
  /// the number of callbacks run.
  int run_due(Time now);

 private:
  std::map<Handle, std::function<void()>> queue_;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace temper
