// Quantities with units, constructed explicitly and read with count(); no implicit conversions.
// Durations are integer nanoseconds (std::chrono); Time counts them from the start of a run.
#pragma once

#include "core/result.hpp"

#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace temper {

template <class Tag, class Rep>
class Quantity {
 public:
  using rep = Rep;
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep count) : count_(count) {}
  constexpr Rep count() const { return count_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity o) { return count_ += o.count_, *this; }
  constexpr Quantity& operator-=(Quantity o) { return count_ -= o.count_, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, Rep n) { return Quantity(a.count_ * n); }

 private:
  Rep count_ = 0;
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Tokens = Quantity<struct TokensTag, std::int64_t>;
using Flops = Quantity<struct FlopsTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

using Duration = std::chrono::nanoseconds;

/// The time line of a run: real time on hardware, virtual time in simulation.
struct RunEpoch {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
};
using Time = std::chrono::time_point<RunEpoch, Duration>;

constexpr double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}
constexpr double seconds(Time t) {
  return seconds(t.time_since_epoch());
}
/// Rounds up to whole nanoseconds, so that a cost is never understated.
inline Duration from_seconds(double s) {
  return Duration(static_cast<Duration::rep>(std::ceil(s * 1e9)));
}
inline Duration operator/(Bytes b, BytesPerSecond r) {
  return from_seconds(static_cast<double>(b.count()) / r.count());
}
inline Duration operator/(Flops f, FlopsPerSecond r) {
  return from_seconds(f.count() / r.count());
}

/// Parses a number with a unit, such as "500ms", "1.5GB", "392GB/s" or "10TFLOP/s". Sizes accept
/// decimal (kB, MB) and binary (KiB, MiB) units. Error InvalidInput: a missing or unknown unit; the
/// message lists the accepted ones.
Result<Duration> parse_duration(std::string_view text);
Result<Bytes> parse_bytes(std::string_view text);
Result<BytesPerSecond> parse_bandwidth(std::string_view text);
Result<FlopsPerSecond> parse_flop_rate(std::string_view text);

/// Formats with the largest unit that divides the value exactly ("500ms", "64KiB"); the parsers
/// above read it back.
std::string to_text(Duration d);
std::string to_text(Bytes b);
std::string to_text(BytesPerSecond r);
std::string to_text(FlopsPerSecond r);

}  // namespace temper
