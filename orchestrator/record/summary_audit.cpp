#include "orchestrator/record/summary_audit.hpp"

#include "core/files.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace temper::orchestrator {
namespace {

using nlohmann::json;

/// Tolerance, in seconds, for times as they are printed.
constexpr double kPrecision = 1e-5;

/// Sum over the states of a card, in nanoseconds; none if one of them is not an integer.
std::optional<std::int64_t> sum_of_states(const json& card) {
  std::uint64_t sum = 0;  // Impossible values may wrap around; then it differs from the wall time.
  if (const auto states = card.find("states_ns"); states != card.end()) {
    for (const json& ns : *states) {
      if (!ns.is_number_integer())
        return std::nullopt;
      sum += ns.get<std::uint64_t>();
    }
  }
  return static_cast<std::int64_t>(sum);
}

/// Compares the sums of waits by state with the states of the cards, in seconds.
std::vector<std::string> audit_waits(const std::string& path, const json& summary) {
  const auto waits = summary.find("waits");
  if (waits == summary.end())
    return {};
  std::map<std::string, double> attributed;
  for (const json& wait : *waits)
    attributed[wait.at("state").get<std::string>()] += wait.at("s").get<double>();
  std::map<std::string, double> waited;
  for (const json& card : summary.at(json::json_pointer("/utilization/per_card"))) {
    const auto states = card.find("states_ns");
    if (states == card.end())
      continue;
    for (const auto& [state, ns] : states->items())
      waited[state] += ns.get<double>() / 1e9;
  }
  std::vector<std::string> violations;
  for (const auto& [state, s] : attributed) {
    // A card may move weights or switch roles, in addition to waiting for them.
    if (const double most = waited[state]; s > most + kPrecision * (1 + most))
      violations.push_back(fmt::format(
          "{}: waits in {} sum to {:.6f} s, its cards waited {:.6f} s", path, state, s, most));
  }
  for (const std::string_view state : {"wait-data", "wait-weights", "wait-quota", "idle", "down"}) {
    const double all = waited[std::string(state)];
    if (const double s = attributed[std::string(state)]; s < all - kPrecision * (1 + all))
      violations.push_back(fmt::format(
          "{}: waits in {} sum to {:.6f} s, its cards waited {:.6f} s", path, state, s, all));
  }
  return violations;
}

/// Of a summary that has the tail of a batch.
std::vector<std::string> audit_tail(const std::string& path,
                                    const json& summary,
                                    std::optional<Duration> tail) {
  const auto found = summary.find("tail");
  if (found == summary.end())
    return {};
  const auto differ = [](double a, double b) {
    return !(std::abs(a - b) <= kPrecision * (1 + std::abs(b)));
  };
  std::vector<std::string> violations;
  const double length = found->at("s").get<double>();
  if (tail && differ(length, seconds(*tail))) {
    violations.push_back(
        fmt::format("{}: the tails of batches took {:.6f} s, but {:.6f} s in the log",
                    path,
                    length,
                    seconds(*tail)));
  }
  double named = 0;
  for (const json& wait : summary.value("waits", json::array()))
    named += wait.value("tail", false) ? wait.at("s").get<double>() : 0;
  if (const double s = found->at("waits_s").get<double>(); differ(s, named))
    violations.push_back(
        fmt::format("{}: cards waited {:.6f} s in tails, but {:.6f} s by cause", path, s, named));
  const auto cards =
      static_cast<double>(summary.at(json::json_pointer("/utilization/per_card")).size());
  const double used = found->at("waits_s").get<double>() + found->at("decode_s").get<double>();
  if (const double most = length * cards; !(used <= most + kPrecision * (1 + most)))
    violations.push_back(
        fmt::format("{}: tails of {:.6f} s of card time in {:.6f} s", path, used, most));
  return violations;
}

/// Throws nlohmann::json::exception if a part has the wrong type.
std::vector<std::string> audit_summary(const std::string& path,
                                       const json& summary,
                                       const LoggedTimes& log) {
  const json::json_pointer wall_path("/utilization/wall_ns");
  const json::json_pointer cards_path("/utilization/per_card");
  if (!summary.contains(wall_path) || !summary.at(wall_path).is_number_integer() ||
      !summary.contains(cards_path))
    return {path + " has no utilization"};
  const auto wall = summary.at(wall_path).get<std::int64_t>();
  std::vector<std::string> violations;
  int index = 0;
  for (const json& card : summary.at(cards_path)) {
    const auto sum = sum_of_states(card);
    if (sum != wall) {
      violations.push_back(
          fmt::format("{}: the states of card {} sum to {} ns, expected the wall time of {} ns",
                      path,
                      index,
                      sum ? std::to_string(*sum) : "a non-integer number of",
                      wall));
    }
    ++index;
  }
  for (std::string& violation : audit_waits(path, summary))
    violations.push_back(std::move(violation));
  const bool is_current = wall == log.end.time_since_epoch().count();
  for (std::string& violation :
       audit_tail(path, summary, is_current ? std::optional(log.tail) : std::nullopt))
    violations.push_back(std::move(violation));
  return violations;
}

}  // namespace

std::vector<std::string> audit_times(const std::filesystem::path& path, const LoggedTimes& log) {
  const auto text = read_file(path);
  if (!text)
    return {};
  const json summary = parse_json(*text);
  if (summary.is_discarded())
    return {path.string() + " is not JSON"};
  try {
    return audit_summary(path.string(), summary, log);
  } catch (const json::exception& e) {
    return {fmt::format("{} is not the summary of a run: {}", path.string(), e.what())};
  }
}

}  // namespace temper::orchestrator
