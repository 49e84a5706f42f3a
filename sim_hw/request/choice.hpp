// Request parameters that are one of a few names, or a number in a range. Pure functions.
#pragma once

#include "core/describe.hpp"
#include "core/nearest_name.hpp"
#include "sim_hw/request/request.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

/// Errors name the key, the value and the bounds.
inline Result<std::int64_t> in_range(std::string_view key,
                                     std::int64_t value,
                                     std::int64_t min,
                                     std::int64_t max) {
  if (value < min || value > max)
    return invalid_input(fmt::format("{}={}: expected {} to {}", key, value, min, max));
  return value;
}

/// A value of an enumeration with names; errors list the names and the nearest one.
template <class E>
Result<E> choice(const Params& params, std::string_view key, E otherwise) {
  const std::string text = params.text(key, name_of(otherwise));
  if (const std::optional<E> found = from_name<E>(text))
    return *found;
  std::vector<std::string> names;
  std::string listed;
  for (const auto& [value, name] : EnumNames<E>::value) {
    names.emplace_back(name);
    listed += (listed.empty() ? "" : ", ") + std::string(name);
  }
  const auto nearest = nearest_name(text, names);
  return invalid_input(fmt::format("{}={}: expected one of {}{}",
                                   key,
                                   text,
                                   listed,
                                   nearest ? fmt::format("; did you mean {}?", *nearest) : ""));
}

}  // namespace temper::sim_hw
