// Formats numbers for people (shares, thousands, sizes) and parses numbers from text. Output does
// not depend on the locale. Pure functions.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace temper {

/// "93.5 %" for a share of 0.935 and one digit after the point.
std::string percent_text(double share, int digits);

/// Three significant digits with a suffix: "842", "1.25k", "12.3k", "125k", "4.50M", "125M".
/// Requires: value >= 0.
std::string short_number(double value);

/// Always in thousands, with `digits` decimals: "12.3k" for 12345 and one digit.
std::string thousands_text(double value, int digits);

/// Always in thousands, at most four significant digits, no trailing zeros: "12k", "12.35k".
std::string significant_thousands(double value);

/// Decimal units, starting at kB: "0 kB", "12 kB", "1.5 MB", "3.2 TB".
std::string bytes_text(double bytes);

/// Parses all of `text` as a decimal number. Blanks and a leading plus sign are errors; `inf` and
/// `nan` are accepted for double. Error: InvalidInput, "expected a number, found `x`". Instantiated
/// for int, std::int64_t, std::uint64_t and double.
template <class T>
Result<T> parse_number(std::string_view text);

extern template Result<int> parse_number(std::string_view text);
extern template Result<std::int64_t> parse_number(std::string_view text);
extern template Result<std::uint64_t> parse_number(std::string_view text);
extern template Result<double> parse_number(std::string_view text);

}  // namespace temper
