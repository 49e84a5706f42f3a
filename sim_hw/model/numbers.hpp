// Conversions of counts to the doubles that costs use: exact below 2^53, which no count reaches.
#pragma once

#include <cstdint>

namespace temper::sim_hw {

constexpr double as_double(std::int64_t count) {
  return static_cast<double>(count);
}

/// Whether `whole` is a multiple of `divisor`; false for divisors of 0 or less.
constexpr bool divides(std::int64_t divisor, std::int64_t whole) {
  return divisor > 0 && whole % divisor == 0;
}

inline constexpr double kGib = 1024.0 * 1024 * 1024;

}  // namespace temper::sim_hw
