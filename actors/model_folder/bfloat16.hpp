// The upper half of a float32: the same range, 8 bits of precision.
#pragma once

#include <bit>
#include <cstdint>

namespace temper::actors {

enum class Bfloat16 : std::uint16_t {};

/// The nearest bfloat16, ties to even; NaN stays NaN.
inline Bfloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  return static_cast<Bfloat16>(is_nan ? (bits >> 16) | 0x40U : rounded);
}

inline float to_float(Bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

}  // namespace temper::actors
