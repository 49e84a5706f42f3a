// Microseconds, in which the machine model keeps its times.
#pragma once

#include "core/units.hpp"

namespace temper::study {

inline constexpr double kMicro = 1e-6;  ///< Seconds.

inline double micro(Duration d) {
  return static_cast<double>(d.count()) * 1e-3;
}

}  // namespace temper::study
