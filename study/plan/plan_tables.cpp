#include "study/plan/plan_tables.hpp"

#include "core/text/numbers.hpp"
#include "core/text/svg_plot.hpp"
#include "core/text/table.hpp"
#include "sim_hw/request/readable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::study {
namespace {

std::string with_sign(double value, std::string_view unit) {
  return (value >= 0 ? "+" : "") + sim_hw::readable(value, unit);
}

/// The first column's value, then the differences of the others.
std::vector<std::string> difference_row(std::string name,
                                        const std::vector<double>& values,
                                        std::string_view unit) {
  std::vector<std::string> row{std::move(name), sim_hw::readable(values.front(), unit)};
  for (std::size_t i = 1; i < values.size(); ++i)
    row.push_back(with_sign(values[i] - values.front(), unit));
  return row;
}

/// "expert-parallel communication +310 ms, pipeline bubble +20 ms": the largest terms with this
/// sign.
std::string largest(PlanEntries terms, double sign) {
  constexpr std::size_t kMost = 3;
  std::erase_if(terms, [&](const auto& term) { return sign * term.second <= 0; });
  std::ranges::stable_sort(
      terms, std::ranges::greater(), [&](const auto& term) { return sign * term.second; });
  std::string out;
  for (std::size_t i = 0; i < std::min(kMost, terms.size()); ++i) {
    out += fmt::format(
        "{}{} {}", out.empty() ? "" : ", ", terms[i].first, with_sign(terms[i].second, "s"));
  }
  return out;
}

}  // namespace

std::string difference_table(std::span<const PlanColumn> columns,
                             PlanEntries PlanColumn::*entries,
                             std::string_view unit,
                             std::string_view title,
                             std::string_view total) {
  std::vector<std::vector<std::string>> rows{{std::string(title)}};
  std::vector<double> sums;
  for (const PlanColumn& column : columns) {
    rows.front().push_back(sums.empty() ? column.name : column.name + " - 1");
    sums.push_back(sum_of(column.*entries));
  }
  const PlanEntries& first = columns.front().*entries;
  for (std::size_t i = 0; i < first.size(); ++i) {
    std::vector<double> values;
    for (const PlanColumn& column : columns)
      values.push_back((column.*entries)[i].second);
    if (std::ranges::any_of(values, [](double v) { return v != 0; }))
      rows.push_back(difference_row(std::string(first[i].first), values, unit));
  }
  rows.push_back(difference_row(std::string(total), sums, unit));
  return bar_table(rows);
}

std::string why_text(const PlanColumn& best,
                     const PlanColumn& other,
                     const sim_hw::ErrorSpread& spread) {
  PlanEntries terms = other.seconds;
  for (std::size_t i = 0; i < terms.size(); ++i)
    terms[i].second -= best.seconds[i].second;
  const double whole = sum_of(best.seconds);
  const double difference = sum_of(other.seconds) - whole;
  std::string out = fmt::format("{} against {}: {} ({}{})",
                                other.name,
                                best.name,
                                with_sign(difference, "s"),
                                difference >= 0 ? "+" : "",
                                percent_text(difference / whole, 1));
  if (const std::string lost = largest(terms, 1); !lost.empty())
    out += "; loses by " + lost;
  if (const std::string won = largest(std::move(terms), -1); !won.empty())
    out += "; gains by " + won;
  if (!other.misfit.empty())
    out += "; does not fit: " + other.misfit;
  if (std::abs(difference / whole) < spread.max)
    out += "; within the error of the model";
  return out + "\n";
}

double sum_of(const PlanEntries& entries) {
  double sum = 0;
  for (const auto& [name, value] : entries)
    sum += value;
  return sum;
}

std::string comparison_text(std::span<const PlanColumn> columns,
                            const ComparisonWords& words,
                            const sim_hw::ErrorSpread& spread) {
  std::string out =
      difference_table(columns, &PlanColumn::seconds, "s", words.time, words.whole_time) + "\n" +
      difference_table(columns, &PlanColumn::bytes, "B", words.memory, "whole device") + "\n";
  for (const PlanColumn& other : columns.subspan(1))
    out += why_text(columns.front(), other, spread);
  return out;
}

std::string front_svg(std::string title,
                      const ScatterAxes& axes,
                      std::span<const ScatterPoint> points) {
  Plot plot;
  plot.title = std::move(title);
  plot.x_label = axes.x;
  Plot::Panel panel{std::string(axes.y), {{"front", {}}}, {}};
  for (const ScatterPoint& point : points) {
    plot.x.push_back(point.x);
    panel.lines.front().values.emplace_back(point.y);
  }
  plot.panels.push_back(std::move(panel));
  return to_svg(plot);
}

std::string accuracy_text(const sim_hw::ErrorSpread& spread,
                          std::string_view hardware,
                          std::string_view what,
                          double seconds) {
  return fmt::format(
      "accuracy: {}predictions were off by {}; {} is then {} to {}. Plans on one hardware share "
      "most of that error, so their order is more reliable than their times, but plans closer to "
      "each other than that may change places.\n",
      spread.elsewhere ? fmt::format("no run of this kind was measured on {}; elsewhere{} ",
                                     hardware,
                                     spread.substituted ? ", with its unmeasured constants," : "")
                       : "",
      spread.text(),
      what,
      sim_hw::readable(seconds / (1 + spread.max), "s"),
      sim_hw::readable(seconds / (1 - std::min(spread.max, 0.99)), "s"));
}

}  // namespace temper::study
