// Request parameters that are one of a few names, or a number in a range. Pure functions.
#pragma once

#include "core/describe.hpp"
#include "core/nearest_name.hpp"
#include "core/scalar_text.hpp"
#include "sim_hw/request/request.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
  const std::vector<std::string> names = enum_names<E>();
  const auto nearest = nearest_name(text, names);
  return invalid_input(fmt::format("{}={}: expected one of {}{}",
                                   key,
                                   text,
                                   fmt::join(names, ", "),
                                   nearest ? fmt::format("; did you mean {}?", *nearest) : ""));
}

/// The value of one of `names`; without the parameter, that of `otherwise`, or else of the first.
/// Errors list the names.
template <class T>
Result<T> one_of(const Params& params,
                 std::string_view key,
                 const std::vector<std::pair<std::string_view, T>>& names,
                 std::string_view otherwise = {}) {
  const std::string text = params.text(key, otherwise.empty() ? names.front().first : otherwise);
  std::vector<std::string_view> known;
  for (const auto& [name, value] : names) {
    if (name == text)
      return value;
    known.push_back(name);
  }
  return invalid_input(fmt::format("{}={}: expected {}", key, text, fmt::join(known, ", ")));
}

}  // namespace temper::sim_hw
