#include "core/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <span>

namespace temper {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 6> kDurationUnits{
    {{"h", 3600e9}, {"min", 60e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}}};
constexpr std::array<Unit, 9> kByteUnits{{{"TiB", 1099511627776.0},
                                          {"GiB", 1073741824.0},
                                          {"MiB", 1048576.0},
                                          {"KiB", 1024.0},
                                          {"TB", 1e12},
                                          {"GB", 1e9},
                                          {"MB", 1e6},
                                          {"kB", 1e3},
                                          {"B", 1}}};
constexpr std::array<Unit, 5> kBandwidthUnits{
    {{"TB/s", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}}};
constexpr std::array<Unit, 4> kFlopRateUnits{
    {{"PFLOP/s", 1e15}, {"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"FLOP/s", 1}}};

std::string unit_names(std::span<const Unit> units) {
  std::string out;
  for (const Unit& unit : units) {
    out += (out.empty() ? "" : ", ");
    out += unit.name;
  }
  return out;
}

Result<double> parse(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, errc] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (errc != std::errc{} || !std::isfinite(number)) {
    return invalid_input(fmt::format("expected a number and a unit ({})", unit_names(units)));
  }
  std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (rest.starts_with(' '))
    rest.remove_prefix(1);
  if (rest.empty())
    return invalid_input(fmt::format("missing unit (one of {})", unit_names(units)));
  for (const Unit& unit : units) {
    if (rest == unit.name)
      return number * unit.factor;
  }
  return invalid_input(fmt::format("unknown unit \"{}\" (one of {})", rest, unit_names(units)));
}

Result<std::int64_t> to_integer(double value) {
  if (std::abs(value) >= 9.2e18)
    return invalid_input("too large");
  return static_cast<std::int64_t>(std::llround(value));
}

/// Uses the largest unit that divides the count, so that the text is short and exact.
std::string exact_text(std::int64_t count, std::span<const Unit> units) {
  if (count == 0)
    return fmt::format("0{}", units.back().name);
  for (const Unit& unit : units) {
    const auto factor = static_cast<std::int64_t>(unit.factor);
    if (count % factor == 0)
      return fmt::format("{}{}", count / factor, unit.name);
  }
  return fmt::format("{}{}", count, units.back().name);
}

std::string scaled_text(double value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (std::abs(value) >= unit.factor)
      return fmt::format("{}{}", value / unit.factor, unit.name);
  }
  return fmt::format("{}{}", value, units.back().name);
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  return parse(text, kDurationUnits).and_then(to_integer).transform([](std::int64_t n) {
    return Duration(n);
  });
}

Result<Bytes> parse_bytes(std::string_view text) {
  return parse(text, kByteUnits).and_then(to_integer).transform([](std::int64_t n) {
    return Bytes(n);
  });
}

Result<BytesPerSecond> parse_bandwidth(std::string_view text) {
  return parse(text, kBandwidthUnits).transform([](double v) { return BytesPerSecond(v); });
}

Result<FlopsPerSecond> parse_flop_rate(std::string_view text) {
  return parse(text, kFlopRateUnits).transform([](double v) { return FlopsPerSecond(v); });
}

std::string to_text(Duration d) {
  return exact_text(d.count(), kDurationUnits);
}
std::string to_text(Bytes b) {
  return exact_text(b.count(), kByteUnits);
}
std::string to_text(BytesPerSecond r) {
  return scaled_text(r.count(), kBandwidthUnits);
}
std::string to_text(FlopsPerSecond r) {
  return scaled_text(r.count(), kFlopRateUnits);
}

}  // namespace temper
