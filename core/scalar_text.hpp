// Text of single values as written in a configuration: 250ms, 1GiB, 0.2. Exact. Shared by the YAML
// reader and writer and the generated documentation, so that they agree.
#pragma once

#include "core/describe.hpp"

#include <concepts>

namespace temper {

/// Values written as one word.
template <class T>
concept Scalar = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, std::string> ||
    IdLike<T> || QuantityLike<T> || std::same_as<T, Duration> || std::same_as<T, Time>;

/// Quantities that are written with a unit.
template <class T>
concept WithUnit = std::same_as<T, Duration> || std::same_as<T, Bytes> ||
    std::same_as<T, BytesPerSecond> || std::same_as<T, FlopsPerSecond>;

/// Scalars with an order, for which bounds make sense.
template <class T>
concept Bounded = (std::is_arithmetic_v<T> && !std::same_as<T, bool>) ||
                  QuantityLike<T> || std::same_as<T, Duration>;
/// Fields without a value, or with one that can have bounds.
template <class T>
concept BoundedIfPresent = OptionalLike<T> && Bounded<typename T::value_type>;

/// The bounds of the value that such a field may have.
template <BoundedIfPresent T>
FieldMeta<typename T::value_type> of_value(const FieldMeta<T>& meta) {
  return {.doc = meta.doc,
          .min = meta.min.value_or(std::nullopt),
          .max = meta.max.value_or(std::nullopt),
          .example = meta.example};
}

// The parser of core/units.hpp for each type with a unit. Error: InvalidInput.
inline Result<Duration> parse_with_unit(std::string_view text, std::type_identity<Duration>) {
  return parse_duration(text);
}
inline Result<Bytes> parse_with_unit(std::string_view text, std::type_identity<Bytes>) {
  return parse_bytes(text);
}
inline Result<BytesPerSecond> parse_with_unit(std::string_view text,
                                              std::type_identity<BytesPerSecond>) {
  return parse_bandwidth(text);
}
inline Result<FlopsPerSecond> parse_with_unit(std::string_view text,
                                              std::type_identity<FlopsPerSecond>) {
  return parse_flop_rate(text);
}

/// Shortest text that reads back to the same number; "0.5", "1e-08", "3".
std::string number_text(double value);
std::string number_text(float value);

/// The text of the value, without quotes.
template <Scalar T>
std::string scalar_text(const T& value) {
  if constexpr (std::same_as<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_enum_v<T>)
    return std::string(name_of(value));
  else if constexpr (std::floating_point<T>)
    return number_text(value);
  else if constexpr (std::integral<T>)
    return std::to_string(value);
  else if constexpr (std::same_as<T, std::string>)
    return value;
  else if constexpr (IdLike<T>)
    return std::to_string(value.value());
  else if constexpr (WithUnit<T>)
    return to_text(value);
  else if constexpr (std::same_as<T, Time>)
    return to_text(value.time_since_epoch());
  else
    return scalar_text(value.count());
}

template <NamedEnum E>
std::vector<std::string> enum_names() {
  std::vector<std::string> names;
  for (const auto& [value, name] : EnumNames<E>::value)
    names.emplace_back(name);  // NOLINT(performance-inefficient-vector-operation): few
  return names;
}

/// "`a`, `b`, `c`".
std::string quoted_list(const std::vector<std::string>& names);

/// What a T looks like, for messages and documentation: "an integer".
template <class T>
std::string type_text() {
  if constexpr (std::same_as<T, bool>)
    return "true or false";
  else if constexpr (std::same_as<T, Duration> || std::same_as<T, Time>)
    return "a duration such as 250ms";
  else if constexpr (std::same_as<T, Bytes>)
    return "a size such as 64MiB";
  else if constexpr (std::same_as<T, BytesPerSecond>)
    return "a bandwidth such as 392GB/s";
  else if constexpr (std::same_as<T, FlopsPerSecond>)
    return "a rate such as 10TFLOP/s";
  else if constexpr (std::is_enum_v<T>)
    return "one of " + quoted_list(enum_names<T>());
  else if constexpr (std::floating_point<T>)
    return "a number";
  else if constexpr (std::integral<T>)
    return "an integer";
  else if constexpr (std::same_as<T, std::string>)
    return "text";
  else if constexpr (IdLike<T>)
    return type_text<typename T::rep>();  // NOLINT(bugprone-branch-clone): a concept, a line
  else if constexpr (QuantityLike<T>)
    return type_text<typename T::rep>();
  else if constexpr (OptionalLike<T>)
    return type_text<typename T::value_type>() + ", or null";
  else if constexpr (VectorLike<T>)
    return "a list";
  else
    return "keys and values";
}

}  // namespace temper
