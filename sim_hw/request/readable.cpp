#include "sim_hw/request/readable.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace temper::sim_hw {
namespace {

using Step = std::pair<double, std::string_view>;

constexpr std::array<Step, 4> kSeconds{{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
constexpr std::array<Step, 5> kDecimal{{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}};

/// The largest step with a value of at least 1; else the smallest step.
template <std::size_t N>
const Step& step_of(const std::array<Step, N>& steps, double value) {
  for (const Step& step : steps) {
    if (std::abs(value) >= step.first)
      return step;
  }
  return steps.back();
}

}  // namespace

std::string readable(double value, std::string_view unit) {
  if (unit == "s") {
    const auto& [factor, name] = step_of(kSeconds, value);
    return fmt::format("{:.4g} {}", value / factor, name);
  }
  if (unit == "B" || unit == "B/s" || unit == "FLOP/s" || unit == "FLOP") {
    const auto& [factor, prefix] = step_of(kDecimal, value);
    return fmt::format("{:.4g} {}{}", value / factor, prefix, unit);
  }
  if (value == std::floor(value) && std::abs(value) < 1e15) {
    return fmt::format("{:.0f}{}{}",
                       value,
                       unit == "count" || unit.empty() ? "" : " ",
                       unit == "count" ? "" : unit);
  }
  constexpr double kLarge = 1e4;  // beyond it four digits would have an exponent
  if (unit == "count" && std::abs(value) >= kLarge) {
    const auto& [factor, prefix] = step_of(kDecimal, value);
    return fmt::format("{:.4g}{}", value / factor, prefix);
  }
  return fmt::format(
      "{:.4g}{}{}", value, unit == "count" || unit.empty() ? "" : " ", unit == "count" ? "" : unit);
}

}  // namespace temper::sim_hw
