#include "sim_hw/request/request.hpp"

#include "core/nearest_name.hpp"
#include "core/split.hpp"
#include "core/text/numbers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <span>

namespace temper::sim_hw {
namespace {

Error missing(std::string_view key, std::string_view expected) {
  return invalid_input(fmt::format("{}: missing; expected {}", key, expected));
}

Error malformed(std::string_view key, std::string_view expected, std::string_view found) {
  return invalid_input(fmt::format("{}: expected {}, found `{}`", key, expected, found));
}

Result<double> to_number(std::string_view key, std::string_view text) {
  const Result<double> value = parse_number<double>(text);
  if (!value || !std::isfinite(*value))
    return malformed(key, "a number", text);
  return *value;
}

/// "1e9" is accepted if it is exactly an integer.
Result<std::int64_t> to_integer(std::string_view key, std::string_view text) {
  const Result<double> number = to_number(key, text);
  constexpr double kExact = 9007199254740992.0;  // 2^53: costs are computed with doubles.
  if (!number || std::floor(*number) != *number)
    return malformed(key, "an integer", text);
  if (std::abs(*number) >= kExact)
    return malformed(key, "an integer below 2^53", text);
  return static_cast<std::int64_t>(*number);
}

}  // namespace

Result<Params> Params::parse(std::string_view text) {
  std::map<std::string, std::string> values;
  for (const std::string_view part : split(text, ";")) {
    const std::string_view item = trimmed(part);
    if (item.empty())
      continue;
    const std::size_t equals = item.find('=');
    const std::string key(trimmed(item.substr(0, equals)));
    if (equals == std::string_view::npos || key.empty())
      return invalid_input(fmt::format("expected key=value, found `{}`", item));
    if (!values.emplace(key, trimmed(item.substr(equals + 1))).second)
      return invalid_input(fmt::format("{}: given twice", key));
  }
  return Params(std::move(values));
}

Result<Params> Params::from_words(std::span<const std::string> words) {
  std::map<std::string, std::string> values;
  for (const std::string& each : words) {
    const std::size_t equals = each.find('=');
    if (equals == 0 || equals == std::string::npos)
      return invalid_input(fmt::format("expected key=value, found `{}`", each));
    if (!values.emplace(each.substr(0, equals), each.substr(equals + 1)).second)
      return invalid_input(fmt::format("{}: given twice", each.substr(0, equals)));
  }
  return Params(std::move(values));
}

const std::string* Params::find(std::string_view key) const {
  asked_.emplace(key, true);
  const auto found = values_.find(std::string(key));
  return found == values_.end() ? nullptr : &found->second;
}

Result<std::int64_t> Params::integer(std::string_view key) const {
  const std::string* text = find(key);
  if (text == nullptr)
    return missing(key, "an integer");
  return to_integer(key, *text);
}

Result<std::int64_t> Params::integer(std::string_view key, std::int64_t otherwise) const {
  const std::string* text = find(key);
  if (text == nullptr)
    return otherwise;
  return to_integer(key, *text);
}

Result<double> Params::number(std::string_view key) const {
  const std::string* text = find(key);
  if (text == nullptr)
    return missing(key, "a number");
  return to_number(key, *text);
}

Result<double> Params::number(std::string_view key, double otherwise) const {
  const std::string* text = find(key);
  if (text == nullptr)
    return otherwise;
  return to_number(key, *text);
}

Result<std::string> Params::text(std::string_view key) const {
  const std::string* text = find(key);
  if (text == nullptr)
    return missing(key, "text");
  return *text;
}

std::string Params::text(std::string_view key, std::string_view otherwise) const {
  const std::string* text = find(key);
  return text == nullptr ? std::string(otherwise) : *text;
}

bool Params::has(std::string_view key) const {
  return find(key) != nullptr;
}

Status Params::all_used() const {
  for (const auto& [key, value] : values_) {
    if (asked_.contains(key))
      continue;
    std::vector<std::string> known;
    for (const auto& [name, asked] : asked_)
      known.push_back(name);
    const auto nearest = nearest_name(key, known);
    return invalid_input(
        nearest ? fmt::format("{}: unknown parameter; did you mean `{}`?", key, *nearest)
                : fmt::format(
                      "{}: unknown parameter; known parameters: {}", key, fmt::join(known, ", ")));
  }
  return {};
}

std::string Params::to_text() const {
  std::string out;
  for (const auto& [key, value] : values_)
    out += fmt::format("{}{}={}", out.empty() ? "" : ";", key, value);
  return out;
}

Result<double> positive(const Params& params, std::string_view key) {
  TEMPER_TRY(const double value, params.number(key));
  if (!(value > 0))
    return invalid_input(fmt::format("{}={}: must be above 0", key, value));
  return value;
}

Result<double> at_least_one(const Params& params, std::string_view key) {
  TEMPER_TRY(const std::int64_t value, params.integer(key));
  if (value < 1)
    return invalid_input(fmt::format("{}={}: must be 1 or more", key, value));
  return static_cast<double>(value);
}

}  // namespace temper::sim_hw
