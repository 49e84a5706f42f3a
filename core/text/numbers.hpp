// Numbers as people read and write them: shares, thousands and sizes as short text, and text as a
// number. The same value gives the same text everywhere. Values only; no threads.
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

/// Always in thousands, with as many digits after the point: "12.3k" for 12345 and one digit.
std::string thousands_text(double value, int digits);

/// Always in thousands, at most four significant digits, no zeros at the end: "12k", "12.35k".
std::string significant_thousands(double value);

/// Decimal units, from kB on: "0 kB", "12 kB", "1.5 MB", "3.2 TB".
std::string bytes_text(double bytes);

/// All of `text` as a number in decimal; neither blanks nor a plus sign around it, and `inf` and
/// `nan` are numbers if T has them. Errors: InvalidInput, "expected a number, found `x`".
/// For int, std::int64_t, std::uint64_t and double.
template <class T>
Result<T> parse_number(std::string_view text);

extern template Result<int> parse_number(std::string_view text);
extern template Result<std::int64_t> parse_number(std::string_view text);
extern template Result<std::uint64_t> parse_number(std::string_view text);
extern template Result<double> parse_number(std::string_view text);

}  // namespace temper
