#pragma once

#include "core/units.hpp"

#include <concepts>

namespace temper {

/// So many seconds after the beginning of a run.
template <class Number>
Time at(Number seconds) {
  if constexpr (std::integral<Number>)
    return Time(std::chrono::seconds(static_cast<std::int64_t>(seconds)));
  else
    return Time(from_seconds(seconds));
}

}  // namespace temper
