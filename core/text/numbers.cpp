#include "core/text/numbers.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <system_error>
#include <utility>

namespace temper {

std::string percent_text(double share, int digits) {
  return fmt::format("{:.{}f} %", share * 100, digits);
}

std::string short_number(double value) {
  if (value < 999.5)
    return fmt::format("{:.0f}", value);
  const double thousands = value / 1e3;
  if (thousands < 9.995)
    return fmt::format("{:.2f}k", thousands);
  if (thousands < 99.95)
    return fmt::format("{:.1f}k", thousands);
  if (thousands < 999.5)
    return fmt::format("{:.0f}k", thousands);
  const double millions = value / 1e6;
  return millions < 99.95 ? fmt::format("{:.2f}M", millions) : fmt::format("{:.0f}M", millions);
}

std::string thousands_text(double value, int digits) {
  return fmt::format("{:.{}f}k", value / 1e3, digits);
}

std::string significant_thousands(double value) {
  return fmt::format("{:.4g}k", value / 1e3);
}

std::string bytes_text(double bytes) {
  constexpr std::array<std::pair<double, const char*>, 4> kUnits{
      {{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}}};
  for (const auto& [unit, name] : kUnits) {
    if (bytes >= unit)
      return fmt::format("{:.1f} {}", bytes / unit, name);
  }
  return fmt::format("{:.0f} kB", bytes / 1e3);
}

template <class T>
Result<T> parse_number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, errc] = std::from_chars(text.data(), end, value);
  if (errc != std::errc{} || stop != end)
    return invalid_input(fmt::format("expected a number, found `{}`", text));
  return value;
}

template Result<int> parse_number(std::string_view text);
template Result<std::int64_t> parse_number(std::string_view text);
template Result<std::uint64_t> parse_number(std::string_view text);
template Result<double> parse_number(std::string_view text);

}  // namespace temper
