#include "sim_hw/validation/band.hpp"

#include "core/split.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

namespace temper::sim_hw {
namespace {

constexpr std::size_t kMostCombinations = 1000;

std::vector<std::string> words_of(std::string_view text, std::string_view separator) {
  const auto parts = split(text, separator);
  return {parts.begin(), parts.end()};
}

Result<OpenParameter> open_parameter(const std::string& key, const std::string& value) {
  OpenParameter open;
  open.keys = words_of(key, "/");
  for (const std::string& option : words_of(value, "..")) {
    open.options.push_back(open.keys.size() == 1 ? std::vector<std::string>{option}
                                                 : words_of(option, "/"));
    if (open.options.back().size() != open.keys.size()) {
      return invalid_input(fmt::format("{}={}: expected {} values per option, found `{}`",
                                       key,
                                       value,
                                       open.keys.size(),
                                       option));
    }
  }
  return open;
}

/// The next combination; false after the last one.
bool advance(std::vector<std::size_t>& chosen, const std::vector<OpenParameter>& open) {
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (++chosen[i] < open[i].options.size())
      return true;
    chosen[i] = 0;
  }
  return false;
}

std::optional<double> value_of(const Result<Cost>& answer, std::string_view metric) {
  if (!answer)
    return std::nullopt;
  const Metric* found = answer->find(metric);
  return found ? std::optional(found->value) : std::nullopt;
}

}  // namespace

std::string OpenParameter::name() const {
  return fmt::format("{}", fmt::join(keys, "/"));
}

Result<BandAnswer> answer_band(const CostContext& context,
                               const Request& request,
                               std::span<const Kind> known) {
  BandAnswer out;
  std::map<std::string, std::string> fixed;
  std::size_t combinations = 1;
  for (const auto& [key, value] : request.params.values()) {
    if (key == "lengths" || value.find("..") == std::string::npos) {
      fixed.emplace(key, value);
      continue;
    }
    TEMPER_TRY(OpenParameter open, open_parameter(key, value));
    combinations *= open.options.size();
    out.open.push_back(std::move(open));
  }
  if (combinations > kMostCombinations) {
    return invalid_input(fmt::format("{} combinations of open parameters: expected at most {}",
                                     combinations,
                                     kMostCombinations));
  }
  std::vector<std::size_t> chosen(out.open.size(), 0);
  do {
    std::map<std::string, std::string> values = fixed;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      for (std::size_t k = 0; k < out.open[i].keys.size(); ++k)
        values[out.open[i].keys[k]] = out.open[i].options[chosen[i]][k];
    }
    out.chosen.push_back(chosen);
    out.answers.push_back(
        cost_of(context,
                {request.hardware, request.cards, request.kind, Params(std::move(values))},
                known));
  } while (advance(chosen, out.open));
  return out;
}

Result<Band> band_of(const BandAnswer& answer, std::string_view metric) {
  std::optional<Band> band;
  for (const Result<Cost>& each : answer.answers) {
    const auto value = value_of(each, metric);
    if (!value)
      continue;
    if (!band)
      band = Band{*value, *value, ""};
    band->low = std::min(band->low, *value);
    band->high = std::max(band->high, *value);
  }
  if (!band) {
    const Result<Cost>& first = answer.answers.front();
    return first ? invalid_input(fmt::format("no metric `{}`", metric)) : Error(first.error());
  }
  double most = 0;
  for (std::size_t i = 0; i < answer.open.size(); ++i) {
    double low = 0;
    double high = 0;
    for (std::size_t a = 0; a < answer.answers.size(); ++a) {
      std::vector<std::size_t> others = answer.chosen[a];
      others[i] = 0;
      const auto value = value_of(answer.answers[a], metric);
      if (!value || std::ranges::any_of(others, [](std::size_t option) { return option != 0; }))
        continue;
      low = low == 0 ? *value : std::min(low, *value);
      high = std::max(high, *value);
    }
    const double ratio = low > 0 ? high / low : 0;
    if (ratio > most) {
      most = ratio;
      band->matters = answer.open[i].name();
    }
  }
  return *band;
}

}  // namespace temper::sim_hw
