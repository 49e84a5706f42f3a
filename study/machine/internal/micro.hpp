// Microseconds, the unit of times in the machine model.
#pragma once

#include "core/units.hpp"

namespace temper::study {

inline constexpr double kMicro = 1e-6;  ///< Seconds.

inline double micro(Duration d) {
  return static_cast<double>(d.count()) * 1e-3;
}

}  // namespace temper::study
