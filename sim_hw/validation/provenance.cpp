#include "sim_hw/validation/provenance.hpp"

#include "core/text/numbers.hpp"
#include "sim_hw/queries/queries.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

namespace temper::sim_hw {
namespace {

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' ||
         c == ':';
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && in_word(text[end]))
      ++end;
    std::string_view word = text.substr(i, end - i);
    while (!word.empty() && (word.back() == '.' || word.back() == ':'))
      word.remove_suffix(1);
    if (!word.empty())
      words.push_back(word);
    i = end + 1;
  }
  return words;
}

/// "CO084" -> "CO" and 84.
std::optional<std::pair<std::string_view, int>> numbered(std::string_view id) {
  const std::size_t digits = id.find_first_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos)
    return std::nullopt;
  const Result<int> number = parse_number<int>(id.substr(digits));
  if (!number)
    return std::nullopt;
  return std::pair(id.substr(0, digits), *number);
}

/// "CO084-CO086" contains CO085.
bool range_holds(std::string_view word, std::string_view id) {
  const std::size_t dash = word.find('-');
  if (dash == std::string_view::npos)
    return false;
  const auto first = numbered(word.substr(0, dash));
  const auto last = numbered(word.substr(dash + 1));
  const auto wanted = numbered(id);
  return first && last && wanted && first->first == wanted->first && last->first == wanted->first &&
         first->second <= wanted->second && wanted->second <= last->second;
}

bool is_kind(std::string_view word) {
  return std::any_of(
      kinds().begin(), kinds().end(), [&](const Kind& kind) { return kind.name == word; });
}

/// Name that fits use for the constants behind a kind; empty if there are none.
std::string_view constants_behind(std::string_view kind) {
  const auto scenarios = scenario_kinds();
  if (std::ranges::any_of(scenarios, [&](const Kind& each) { return each.name == kind; }))
    return "";
  if (kind == "host_copy" || kind == "host_to_device" || kind == "device_to_host")
    return "host.";
  if (kind == "p2p" || kind == "reshard")
    return "p2p";
  const auto network = network_kinds();
  const bool collective = std::any_of(
      network.begin(), network.end(), [&](const Kind& each) { return each.name == kind; });
  return collective ? "collectives." : "operators.";
}

}  // namespace

bool names_row(std::string_view source, const Row& row) {
  const std::vector<std::string_view> words = words_of(source);
  const std::string_view file = std::string_view(row.id).substr(0, row.id.find(':'));
  bool of_file = false;
  bool other_kinds = false;
  bool this_kind = false;
  for (const std::string_view word : words) {
    if (word == row.id || range_holds(word, row.id))
      return true;
    of_file = of_file || (word == file && file != row.id);
    this_kind = this_kind || word == row.kind;
    other_kinds = other_kinds || is_kind(word);
  }
  return of_file && (this_kind || !other_kinds);
}

Provenance provenance(std::span<const HardwareSpec* const> hardware,
                      std::span<const FrameworkSpec* const> frameworks,
                      const Row& row) {
  for (const FrameworkSpec* spec : frameworks) {
    if (row.params.find("framework=" + spec->name) == std::string::npos)
      continue;
    for (const FitRecord& fit : spec->fits) {
      if (names_row(fit.source, row))
        return Provenance::Used;
    }
  }
  const std::string_view group = constants_behind(row.kind);
  bool recorded = group.empty();
  for (const HardwareSpec* spec : hardware) {
    for (const FitRecord& fit : spec->fits) {
      if (names_row(fit.source, row))
        return Provenance::Used;
      if (slug(spec->name) == slug(row.hardware) && fit.constants.find(group) != std::string::npos)
        recorded = true;
    }
  }
  return recorded ? Provenance::Unused : Provenance::Unrecorded;
}

}  // namespace temper::sim_hw
