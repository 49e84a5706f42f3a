#include "study/simulate/axes.hpp"

#include "core/text/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

namespace temper::study {
namespace {

constexpr double kMostEta = 1024;  // As in the configuration.

/// Not inside brackets, braces and quotes of YAML. A quote inside a word is part of it.
std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    const char before = out.back().empty() ? ' ' : out.back().back();
    if (quote != 0)
      quote = c == quote ? '\0' : quote;
    else if ((c == '"' || c == '\'') && std::string_view(" [{,:").find(before) != std::string::npos)
      quote = c;
    else
      depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (c == at && depth == 0 && quote == 0)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

bool contains(const auto& list, const auto& value) {
  return std::ranges::find(list, value) != std::ranges::end(list);
}

}  // namespace

std::string SweepAxis::name() const {
  return fmt::format("{}", fmt::join(keys, "+"));
}

std::string SweepAxis::text(std::size_t place) const {
  return fmt::format("{}", fmt::join(values[place], "/"));
}

std::vector<std::string> SweepAxis::sets(std::size_t place) const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < keys.size(); ++i)
    out.push_back(keys[i] + "=" + values[place][i]);
  return out;
}

Result<SweepAxis> parse_axis(std::string_view flag, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    return invalid_input(
        fmt::format("{} {}: expected key=value,value or key+key=value/value,...", flag, text));
  }
  SweepAxis axis;
  axis.keys = split(text.substr(0, equals), '+');
  for (const std::string& each : split(text.substr(equals + 1), ',')) {
    axis.values.push_back(axis.keys.size() == 1 ? std::vector{each} : split(each, '/'));
    if (axis.values.back().size() != axis.keys.size() || each.empty()) {
      return invalid_input(fmt::format("{} {}: `{}`: expected one value for each of {} keys",
                                       flag,
                                       axis.name(),
                                       each,
                                       axis.keys.size()));
    }
  }
  return axis;
}

Result<std::vector<SweepAxis>> parse_axes(std::string_view flag,
                                          const std::vector<std::string>& texts) {
  std::vector<SweepAxis> axes;
  for (const std::string& text : texts) {
    TEMPER_TRY(SweepAxis axis, parse_axis(flag, text));
    axes.push_back(std::move(axis));
  }
  return axes;
}

std::size_t combination_count(const std::vector<SweepAxis>& axes) {
  std::size_t product = 1;
  for (const SweepAxis& axis : axes) {
    product *= axis.values.size();
    if (product > kMostCombinations)
      return kMostCombinations + 1;
  }
  return product;
}

std::vector<std::size_t> combination(const std::vector<SweepAxis>& axes, std::size_t n) {
  std::vector<std::size_t> places(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    places[i] = n % axes[i].values.size();
    n /= axes[i].values.size();
  }
  return places;
}

void add_sets(std::vector<std::string>& sets,
              const std::vector<SweepAxis>& axes,
              const std::vector<std::size_t>& places) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    std::ranges::move(axes[i].sets(places[i]), std::back_inserter(sets));
}

Result<std::vector<std::vector<std::string>>> combinations(const std::vector<SweepAxis>& axes) {
  const std::size_t all = combination_count(axes);
  if (all > kMostCombinations)
    return invalid_input(fmt::format("expected at most {} combinations", kMostCombinations));
  std::vector<std::vector<std::string>> out(all);
  for (std::size_t n = 0; n < all; ++n)
    add_sets(out[n], axes, combination(axes, n));
  return out;
}

Result<std::vector<double>> parse_etas(const std::vector<std::string>& texts) {
  if (texts.empty())
    return invalid_input("--eta: expected at least one bound");
  std::vector<double> out;
  for (const std::string& text : texts) {
    const auto eta = parse_number<double>(text);
    if (!eta || !(*eta >= 0 && *eta <= kMostEta))
      return invalid_input(
          fmt::format("--eta: expected numbers from 0 to {}, found `{}`", kMostEta, text));
    if (contains(out, *eta))
      return invalid_input(fmt::format("--eta: {} is given twice", *eta));
    out.push_back(*eta);
  }
  return out;
}

Result<std::vector<std::uint64_t>> parse_seeds(const std::vector<std::string>& texts) {
  std::vector<std::uint64_t> out;
  for (const std::string& text : texts) {
    const auto seed = parse_number<std::uint64_t>(text);
    if (!seed)
      return invalid_input(fmt::format("--seeds: expected whole numbers from 0, found `{}`", text));
    if (contains(out, *seed))
      return invalid_input(fmt::format("--seeds: {} is given twice", *seed));
    out.push_back(*seed);
  }
  return out;
}

}  // namespace temper::study
