#include "core/text/numbers.hpp"
#include "core/text/table.hpp"
#include "study/faults/faults.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::study {
namespace {

std::string percent(double share) {
  return percent_text(share, 2);
}

std::string hours(double s) {
  return fmt::format("{:.2f} h", s / 3600);
}

/// In updates, as a run can only save between them.
std::string in_updates(const FaultsReport& report, double interval_s) {
  return report.seconds_per_update > 0
             ? fmt::format(" ({:.0f} updates)",
                           std::max(1.0, interval_s / report.seconds_per_update))
             : std::string();
}

}  // namespace

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
                    hours(r.interval_s),
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
    text += fmt::format("the trainer is lost every {} on the average\n", hours(report.failures_s));
    text += fmt::format("save every, by Young: {}{}; by Daly: {}{}\n",
                        hours(report.young_s),
                        in_updates(report, report.young_s),
                        hours(report.daly_s),
                        in_updates(report, report.daly_s));
  }
  return text;
}

}  // namespace temper::study
