#include "actors/task/internal/numbers.hpp"

#include <charconv>
#include <cmath>
#include <string>

namespace temper::actors {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Number of digits at position `at`.
std::size_t digits_at(std::string_view text, std::size_t at) {
  std::size_t n = 0;
  while (at + n < text.size() && is_digit(text[at + n]))
    ++n;
  return n;
}

/// The end of the unsigned number that starts at `at`; `at` if there is none.
std::size_t end_of_number(std::string_view text, std::size_t at) {
  const std::size_t whole = digits_at(text, at);
  std::size_t end = at + whole;
  const auto group_follows = [&] {
    return end < text.size() && text[end] == ',' && digits_at(text, end + 1) == 3;
  };
  if (whole >= 1 && whole <= 3) {
    while (group_follows())
      end += 4;
  }
  std::size_t fraction = 0;
  if (end < text.size() && text[end] == '.')
    fraction = digits_at(text, end + 1);
  if (fraction > 0)
    end += 1 + fraction;
  if (whole + fraction == 0)
    return at;
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const bool sign = end + 1 < text.size() && (text[end + 1] == '-' || text[end + 1] == '+');
    const std::size_t first = end + (sign ? 2 : 1);
    const std::size_t exponent = digits_at(text, first);
    if (exponent > 0)
      end = first + exponent;
  }
  return end;
}

std::optional<double> value_of(std::string_view number) {
  std::string plain;
  for (const char c : number) {
    if (c != ',')
      plain += c;
  }
  double value = 0;
  const auto [stop, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (error != std::errc{} || stop != plain.data() + plain.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

bool is_sign(std::string_view text, std::size_t at) {
  if (at >= text.size() || text[at] != '-')
    return false;
  return at == 0 || (!is_word(text[at - 1]) && text[at - 1] != ')' && text[at - 1] != ']');
}

enum class Occurrence { First, Last };

std::optional<double> find_number(std::string_view text, Occurrence occurrence) {
  std::optional<double> found;
  for (std::size_t i = 0; i < text.size();) {
    const bool negative = is_sign(text, i);
    const std::size_t first = i + (negative ? 1 : 0);
    const std::size_t end = end_of_number(text, first);
    if (end == first) {
      ++i;
      continue;
    }
    if (const auto value = value_of(text.substr(first, end - first))) {
      found = negative ? -*value : *value;
      if (occurrence == Occurrence::First)
        return found;
    }
    i = end;
  }
  return found;
}

}  // namespace

std::optional<double> final_number(std::string_view text) {
  constexpr std::string_view kMark = "####";
  const std::size_t at = text.rfind(kMark);
  return at == std::string_view::npos
             ? find_number(text, Occurrence::Last)
             : find_number(text.substr(at + kMark.size()), Occurrence::First);
}

}  // namespace temper::actors
