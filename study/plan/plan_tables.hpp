// Compares plans of any kind: term by term, why one loses to the first, and how accurate the model
// is. Pure functions.
#pragma once

#include "core/text/scatter.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/plan/plan_words.hpp"
#include "sim_hw/validation/error_spread.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace temper::study {

using PlanEntries = std::vector<std::pair<std::string_view, double>>;
double sum_of(const PlanEntries& entries);

/// A term of a plan's time or memory, for JSON.
struct ShareJson {
  std::string name;
  double value = 0;  ///< Seconds or bytes.
};
void describe(auto& v, ShareJson& s) {
  v.field(1, "name", s.name);
  v.field(2, "value", s.value);
}

/// Terms of time or memory, in their owner's order.
std::vector<ShareJson> shares_of(const auto& entries) {
  std::vector<ShareJson> out;
  out.reserve(std::size(entries));
  for (const auto& [name, value] : entries)
    out.push_back({std::string(name), value});
  return out;
}

/// The fields for the accuracy of the model, numbered from `id`.
void describe_error(auto& v, int id, sim_hw::ErrorSpread& spread) {
  v.field(id, "error_measured_on", spread.hardware);
  v.field(id + 1, "error_rows", spread.rows);
  v.field(id + 2, "error_mean", spread.mean);
  v.field(id + 3, "error_max", spread.max);
}

/// The best plans as "1", "2", ..., then the user's plan as "yours". Borrows.
template <class Plan>
std::vector<std::pair<std::string, const Plan*>> named_plans(const std::vector<Plan>& best,
                                                             const std::optional<Plan>& compared) {
  std::vector<std::pair<std::string, const Plan*>> out;
  for (std::size_t i = 0; i < best.size(); ++i)
    out.emplace_back(std::to_string(i + 1), &best[i]);
  if (compared)
    out.emplace_back("yours", &*compared);
  return out;
}

/// Points of a front with the named plans on top; `at` returns the two values of a plan.
template <class Plan>
std::vector<ScatterPoint> scatter_points(
    const std::vector<Plan>& front,
    const std::vector<std::pair<std::string, const Plan*>>& named,
    const auto& at) {
  std::vector<ScatterPoint> out;
  const auto add = [&](const Plan& plan, char mark) {
    const auto [x, y] = at(plan);
    out.push_back({x, y, mark});
  };
  for (const Plan& plan : front)
    add(plan, '.');
  for (auto plan = named.rbegin(); plan != named.rend(); ++plan)
    add(*plan->second, plan->first.front());
  return out;
}

struct PlanColumn {
  std::string name;     ///< "1", "2", ..., "yours"
  PlanEntries seconds;  ///< Summands of its time; the same names in every column.
  PlanEntries bytes;    ///< For its fullest device.
  std::string misfit;   ///< The limit that it exceeds; empty if it fits.
};

/// A column for a plan of this problem; its time is the sum of `seconds`.
PlanColumn plan_column(std::string name,
                       PlanEntries seconds,
                       const sim_hw::PlacedLedger& memory,
                       const auto& problem) {
  const auto bytes = memory.device.entries();
  return {std::move(name),
          std::move(seconds),
          {bytes.begin(), bytes.end()},
          sim_hw::excess_text(memory, problem.device_memory, problem.host_memory)};
}

/// Values of the first column, and the differences of the others; entries that are 0 everywhere are
/// left out. `title` heads the names, `total` names the last row. Requires: at least one column.
std::string difference_table(std::span<const PlanColumn> columns,
                             PlanEntries PlanColumn::*entries,
                             std::string_view unit,
                             std::string_view title,
                             std::string_view total);

/// One line: by how much `other` loses to `best`, and through which terms.
std::string why_text(const PlanColumn& best,
                     const PlanColumn& other,
                     const sim_hw::ErrorSpread& spread);

struct ComparisonWords {
  std::string_view time, whole_time;  ///< Headings of the terms of the time, and of their sum.
  std::string_view memory;            ///< Heading of the entries of a device's memory.
};

/// Difference tables of time and memory, then why each other column loses to the first.
std::string comparison_text(std::span<const PlanColumn> columns,
                            const ComparisonWords& words,
                            const sim_hw::ErrorSpread& spread);

/// The line through the points, as an SVG image.
std::string front_svg(std::string title,
                      const ScatterAxes& axes,
                      std::span<const ScatterPoint> points);

/// One line: the error of predictions like `what` ("the step") of `seconds` on this hardware.
std::string accuracy_text(const sim_hw::ErrorSpread& spread,
                          std::string_view hardware,
                          std::string_view what,
                          double seconds);

}  // namespace temper::study
