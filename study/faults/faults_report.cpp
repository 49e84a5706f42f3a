#include "core/text/numbers.hpp"
#include "core/text/svg_plot.hpp"
#include "core/text/table.hpp"
#include "study/faults/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace temper::study {
namespace {

std::string percent(double share) {
  return percent_text(share, 2);
}

std::string hours(double s) {
  return fmt::format("{:.2f} h", s / 3600);
}

/// The interval in updates, because a run can only save between updates.
std::string in_updates(const FaultsReport& report, double interval_s) {
  return report.seconds_per_update > 0
             ? fmt::format(" ({:.0f} updates)",
                           std::max(1.0, interval_s / report.seconds_per_update))
             : std::string();
}

}  // namespace

std::string faults_svg(const FaultsReport& report) {
  Plot plot;
  plot.title = fmt::format("{:.0f} days, {} seeds", report.days, report.seeds);
  plot.x_label = "work between two checkpoints, h";
  std::map<double, std::map<std::int32_t, double>> goodput;
  std::set<std::int32_t> spares;
  for (const FaultsRow& row : report.rows) {
    goodput[row.interval_s][row.spares] = row.goodput;
    spares.insert(row.spares);
  }
  Plot::Panel panel{"goodput, %", {}, 100.0};
  for (const std::int32_t n : spares)
    panel.lines.push_back({fmt::format("{} spare hosts", n), {}});
  const bool young = report.failures_s > 0;
  if (young)
    panel.lines.push_back({"1 - C/T - T/2M (Young)", {}});
  for (const auto& [interval_s, by_spares] : goodput) {
    plot.x.push_back(interval_s / 3600);
    std::size_t line = 0;
    for (const std::int32_t n : spares) {
      const auto it = by_spares.find(n);
      panel.lines[line++].values.push_back(it == by_spares.end() ? std::nullopt
                                                                 : std::optional(100 * it->second));
    }
    if (young) {
      const double left = 1 - report.save_s / interval_s - interval_s / (2 * report.failures_s);
      panel.lines[line].values.push_back(100 * std::max(0.0, left));
    }
  }
  plot.panels.push_back(std::move(panel));
  return to_svg(plot);
}

std::string faults_text(const FaultsReport& report) {
  std::vector<std::vector<std::string>> rows{{"spares",
                                              "every",
                                              "interval",
                                              "goodput",
                                              "from",
                                              "to",
                                              "down",
                                              "again",
                                              "checkpoint",
                                              "missing",
                                              "start",
                                              "rollbacks",
                                              "losses"}};
  for (const FaultsRow& r : report.rows) {
    rows.push_back({std::to_string(r.spares),
                    std::to_string(r.every),
                    r.every == 0 ? "never" : hours(r.interval_s),
                    percent(r.goodput),
                    percent(r.goodput_min),
                    percent(r.goodput_max),
                    percent(r.down),
                    percent(r.again),
                    percent(r.checkpoint),
                    percent(r.missing),
                    percent(r.start),
                    fmt::format("{:.1f}", r.rollbacks),
                    fmt::format("{:.1f}", r.losses)});
  }
  std::string text = bar_table(rows);
  text += fmt::format("\n{:.1f} days, {} seeds; an update takes {:.1f} s, a checkpoint {:.1f} s\n",
                      report.days,
                      report.seeds,
                      report.seconds_per_update,
                      report.save_s);
  if (report.failures_s > 0) {
    text +=
        fmt::format("mean time between failures of the trainer: {}\n", hours(report.failures_s));
    text += fmt::format("checkpoint interval by Young: {}{}; by Daly: {}{}\n",
                        hours(report.young_s),
                        in_updates(report, report.young_s),
                        hours(report.daly_s),
                        in_updates(report, report.daly_s));
  }
  return text;
}

}  // namespace temper::study
