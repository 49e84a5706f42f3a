#include "sim_hw/validation/coverage.hpp"

#include <utility>

namespace temper::sim_hw {
namespace {

using Key = std::pair<std::string, std::string>;

Coverage& group_of(std::map<Key, Coverage>& groups, std::string table, std::string area) {
  Coverage& group = groups[{table, area}];
  group.table = std::move(table);
  group.area = std::move(area);
  return group;
}

std::vector<Coverage> values_of(const std::map<Key, Coverage>& groups) {
  std::vector<Coverage> out;
  out.reserve(groups.size());
  for (const auto& [key, group] : groups)
    out.push_back(group);
  return out;
}

}  // namespace

std::string reason_class(std::string_view reason) {
  if (reason.starts_with("conditions missing"))
    return std::string(reason);
  return std::string(reason.substr(0, reason.find(": ")));
}

std::vector<Coverage> coverage(std::span<const Comparison> rows,
                               std::span<const UnusedRow> unused) {
  std::map<Key, Coverage> groups;
  for (const Comparison& row : rows) {
    if (row.row.table.empty())
      continue;
    Coverage& group = group_of(groups, row.row.table, row.row.area);
    ++group.rows;
    group.bands += row.band ? 1 : 0;
    group.in_band += row.in_band() ? 1 : 0;
    if (row.band)
      continue;
    if (row.predicted)
      ++group.points;
    else
      ++group.reasons[row.exceeds_memory ? "exceeds the device memory" : "the prediction failed"];
  }
  for (const UnusedRow& row : unused) {
    if (row.table.empty())
      continue;
    Coverage& group = group_of(groups, row.table, row.what.substr(0, row.what.find(' ')));
    ++group.rows;
    ++group.reasons[reason_class(row.reason)];
  }
  return values_of(groups);
}

std::vector<Coverage> by_table(std::span<const Coverage> areas) {
  std::map<Key, Coverage> groups;
  for (const Coverage& area : areas) {
    Coverage& all = group_of(groups, area.table, "all");
    all.rows += area.rows;
    all.points += area.points;
    all.bands += area.bands;
    all.in_band += area.in_band;
    for (const auto& [reason, rows] : area.reasons)
      all.reasons[reason] += rows;
  }
  return values_of(groups);
}

}  // namespace temper::sim_hw
