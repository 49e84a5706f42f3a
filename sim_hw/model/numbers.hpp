// Counts as the doubles that costs are made of. Exact below 2^53, which no count here reaches.
#pragma once

#include <cstdint>

namespace temper::sim_hw {

constexpr double as_double(std::int64_t count) {
  return static_cast<double>(count);
}

inline constexpr double kGib = 1024.0 * 1024 * 1024;

}  // namespace temper::sim_hw
