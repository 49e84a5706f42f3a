#include "orchestrator/record/summary_audit.hpp"

#include "core/files.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {
namespace {

using nlohmann::json;

/// The sum of a card's states, in nanoseconds.
std::int64_t sum_of_states(const json& card) {
  std::int64_t sum = 0;
  if (const auto states = card.find("states_ns"); states != card.end()) {
    for (const json& ns : *states)
      sum += ns.get<std::int64_t>();
  }
  return sum;
}

}  // namespace

std::vector<std::string> audit_times(const std::filesystem::path& path) {
  const auto text = read_file(path);
  if (!text)
    return {};
  const json summary = parse_json(*text);
  if (summary.is_discarded())
    return {path.string() + " is not JSON"};
  const json::json_pointer wall_path("/utilization/wall_ns");
  const json::json_pointer cards_path("/utilization/per_card");
  if (!summary.contains(wall_path) || !summary.contains(cards_path)) {
    return {path.string() + " has no utilization"};
  }
  const auto wall = summary.at(wall_path).get<std::int64_t>();
  std::vector<std::string> violations;
  int index = 0;
  for (const json& card : summary.at(cards_path)) {
    if (const std::int64_t sum = sum_of_states(card); sum != wall) {
      violations.push_back(fmt::format("{}: the states of card {} sum to {} ns, the wall is {} ns",
                                       path.string(),
                                       index,
                                       sum,
                                       wall));
    }
    ++index;
  }
  return violations;
}

}  // namespace temper::orchestrator
