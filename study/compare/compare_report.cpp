#include "study/compare/compare_report.hpp"

#include "core/text/numbers.hpp"
#include "core/text/svg_plot.hpp"
#include "core/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace temper::study {
namespace {

constexpr std::size_t kMostPoints = 150;  ///< Per line.

/// Runs that differ only in their seed.
struct Cell {
  const CompareRow* first = nullptr;
  std::size_t runs = 0;
  std::vector<const CompareRow*> ran;
  std::vector<std::vector<RewardPoint>> rewards;  ///< Smoothed; of the runs that ended.

  bool learns() const { return !ran.empty() && ran.front()->final_reward.has_value(); }
};

std::vector<Cell> cells_of(const PolicyComparison& comparison) {
  std::vector<Cell> out;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    const CompareRow& row = comparison.rows[i];
    const bool goes_on = !out.empty() && out.back().first->policy == row.policy &&
                         out.back().first->eta == row.eta && out.back().first->vary == row.vary;
    if (!goes_on)
      out.push_back({&row, 0, {}, {}});
    Cell& cell = out.back();
    ++cell.runs;
    if (row.end != CompareEnd::Ran)
      continue;
    cell.ran.push_back(&row);
    if (row.final_reward)
      cell.rewards.push_back(smoothed(comparison.rewards[i]));
  }
  return out;
}

/// Statistics over the runs of a cell that have a value; empty if none has one.
struct SeedRange {
  std::size_t count = 0;
  double sum = 0, least = 0, most = 0;

  void add(double value) {
    least = count == 0 ? value : std::min(least, value);
    most = count == 0 ? value : std::max(most, value);
    sum += value;
    ++count;
  }
  double mean() const { return sum / static_cast<double>(count); }
};

template <class Get>
SeedRange range_of(const Cell& cell, Get get) {
  SeedRange out;
  for (const CompareRow* row : cell.ran) {
    if (const std::optional<double> value = get(*row))
      out.add(*value);
  }
  return out;
}

template <class Get>
double mean(const Cell& cell, Get get) {
  return range_of(cell,
                  [&](const CompareRow& row) {
                    return std::optional<double>(static_cast<double>(get(row)));
                  })
      .mean();
}

/// Runs of less than ten seconds are local ones, which are measured finely enough.
int time_decimals(const SeedRange& s) {
  return s.count > 0 && s.mean() < 10 ? 2 : 1;
}

/// "51.2" or, if several differ, "51.2 (50.1..52.0)"; "-" if there is none; adds how many have a
/// value if not all do.
std::string shown(const SeedRange& s, std::size_t of, int decimals) {
  if (s.count == 0)
    return "-";
  std::string out = fmt::format("{:.{}f}", s.mean(), decimals);
  const std::string least = fmt::format("{:.{}f}", s.least, decimals);
  const std::string most = fmt::format("{:.{}f}", s.most, decimals);
  if (least != most)
    out += fmt::format(" ({}..{})", least, most);
  if (s.count < of)
    out += fmt::format(" {} of {}", s.count, of);
  return out;
}

/// "objective=clip" for "algorithm.objective=clip".
std::string without_sections(const std::string& vary) {
  std::string out, word;
  for (const char c : vary + " ") {
    if (c == '.' && word.find('=') == std::string::npos) {
      word.clear();
    } else if (c == ' ') {
      out += (out.empty() || word.empty() ? "" : " ") + word;
      word.clear();
    } else {
      word += c;
    }
  }
  return out;
}

std::string name_of_cell(const CompareRow& row) {
  std::string out = fmt::format("{} {}", row.policy, row.eta);
  if (!row.vary.empty())
    out += " " + without_sections(row.vary);
  return out;
}

struct Columns {
  bool vary = false, learns = false;
};

std::vector<std::string> head(const Columns& columns, double target) {
  std::vector<std::string> out{"policy", "eta"};
  if (columns.vary)
    out.emplace_back("varied");
  for (const char* name : {"time, s",
                           "tokens/s",
                           "busy",
                           "max s",
                           "mean s",
                           "wasted",
                           "groups evicted",
                           "trained length",
                           "begun length",
                           "bias"})
    out.emplace_back(name);
  if (columns.learns) {
    out.insert(
        out.end(),
        {"final reward", fmt::format("steps to {}", target), fmt::format("time to {}, s", target)});
  }
  return out;
}

void add_figures(std::vector<std::string>& line, const Cell& cell) {
  const SeedRange times =
      range_of(cell, [](const CompareRow& r) { return std::optional(r.seconds); });
  std::int64_t oldest = 0;
  for (const CompareRow* row : cell.ran)
    oldest = std::max(oldest, row->staleness_max);
  const double begun = mean(cell, [](const auto& r) { return r.begun_length; });
  line.insert(line.end(),
              {shown(times, cell.ran.size(), time_decimals(times)),
               thousands_text(mean(cell, [](const auto& r) { return r.trained_per_s; }), 1),
               fmt::format("{:.1f} %", 100 * mean(cell, [](const auto& r) { return r.busy; })),
               fmt::format("{}", oldest),
               fmt::format("{:.2f}", mean(cell, [](const auto& r) { return r.staleness_mean; })),
               fmt::format("{:.1f} %", 100 * mean(cell, [](const auto& r) { return r.wasted; })),
               fmt::format("{:.0f}", mean(cell, [](const auto& r) { return r.groups_evicted; })),
               fmt::format("{:.0f}", mean(cell, [](const auto& r) { return r.trained_length; })),
               begun > 0 ? fmt::format("{:.0f}", begun) : "-",
               fmt::format("{:.3f}", mean(cell, [](const auto& r) { return r.bias; }))});
}

void add_learned(std::vector<std::string>& line, const Cell& cell) {
  const std::size_t of = cell.ran.size();
  const auto steps = [](const CompareRow& r) -> std::optional<double> {
    if (!r.steps_to_target)
      return std::nullopt;
    return static_cast<double>(*r.steps_to_target);
  };
  line.push_back(shown(range_of(cell, [](const auto& r) { return r.final_reward; }), of, 3));
  line.push_back(shown(range_of(cell, steps), of, 0));
  const SeedRange times = range_of(cell, [](const auto& r) { return r.seconds_to_target; });
  line.push_back(shown(times, of, time_decimals(times)));
}

std::string notes(const std::vector<Cell>& cells, const Columns& columns, double target) {
  std::string out;
  std::size_t seeds = 0;
  for (const Cell& cell : cells)
    seeds = std::max(seeds, cell.runs);
  if (seeds > 1) {
    out += fmt::format(
        "\nValues are means over {} seeds, with (least..most) in parentheses; max s is "
        "the largest.\n",
        seeds);
  }
  if (columns.learns) {
    out += fmt::format(
        "\nFinal reward: mean over the last tenth of the updates. To {}: the first update at which "
        "the mean over {} updates reaches it.\n",
        target,
        kRewardWindow);
  }
  return out;
}

std::string reasons(const PolicyComparison& comparison) {
  std::string not_run, failed;
  const CompareRow* before = nullptr;
  for (const CompareRow& r : comparison.rows) {
    std::string cell = fmt::format("{} {}{}{}", r.policy, r.eta, r.vary.empty() ? "" : " ", r.vary);
    // An error of one seed usually applies to the others too.
    const bool again = before != nullptr && before->policy == r.policy && before->eta == r.eta &&
                       before->vary == r.vary && before->end == r.end;
    before = &r;
    if (r.end == CompareEnd::NotRun && !again)
      not_run += fmt::format("  {}: {}\n", cell, r.reason);
    if (r.end == CompareEnd::Failed) {
      failed += fmt::format("  {}, seed {}: {}{}{}\n",
                            cell,
                            r.seed,
                            r.reason,
                            r.folder.empty() ? "" : "; ",
                            r.folder);
    }
  }
  return (not_run.empty() ? "" : "\nnot run\n" + not_run) +
         (failed.empty() ? "" : "\nfailed\n" + failed);
}

/// The cell that times are relative to; null: none ran.
const Cell* baseline(const std::vector<Cell>& cells) {
  const Cell* first = nullptr;
  for (const Cell& cell : cells) {
    if (cell.ran.empty())
      continue;
    if (cell.first->policy == name_of(orchestrator::StalenessRuleKind::Sync))
      return &cell;
    if (first == nullptr)
      first = &cell;
  }
  return first;
}

double seconds_of(const Cell& cell) {
  return mean(cell, [](const auto& r) { return r.seconds; });
}

std::string line_of(const Cell& cell) {
  return cell.first->vary.empty() ? cell.first->policy
                                  : cell.first->policy + " " + without_sections(cell.first->vary);
}

/// Mean over the seeds; none if one of them has no value.
template <class At>
std::optional<double> mean_reward(const Cell& cell, At at) {
  double sum = 0;
  for (const auto& curve : cell.rewards) {
    const std::optional<double> value = at(curve);
    if (!value)
      return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(cell.rewards.size());
}

}  // namespace

std::string compare_text(const PolicyComparison& comparison) {
  const std::vector<Cell> cells = cells_of(comparison);
  Columns columns;
  for (const Cell& cell : cells) {
    columns.vary = columns.vary || !cell.first->vary.empty();
    columns.learns = columns.learns || cell.learns();
  }
  std::vector<std::vector<std::string>> table{head(columns, comparison.target_reward)};
  for (const Cell& cell : cells) {
    std::vector<std::string>& line = table.emplace_back();
    line = {cell.first->policy, fmt::format("{}", cell.first->eta)};
    if (columns.vary)
      line.push_back(without_sections(cell.first->vary));
    if (!cell.ran.empty())
      add_figures(line, cell);
    if (cell.learns())
      add_learned(line, cell);
    line.resize(table.front().size(), "-");
  }
  return bar_table(table) + notes(cells, columns, comparison.target_reward) + reasons(comparison);
}

std::string compare_svg(const PolicyComparison& comparison, const std::string& title) {
  const std::vector<Cell> cells = cells_of(comparison);
  std::set<double> etas;
  std::vector<std::string> names;
  for (const Cell& cell : cells) {
    etas.insert(cell.first->eta);
    if (std::ranges::find(names, line_of(cell)) == names.end())
      names.push_back(line_of(cell));
  }
  const Cell* base = baseline(cells);
  Plot plot;
  plot.title = title;
  plot.x_label = "eta";
  plot.x.assign(etas.begin(), etas.end());
  plot.panels = {
      {fmt::format("time, {} = 1", base == nullptr ? "-" : name_of_cell(*base->first)), {}, {}},
      {"largest s", {}, {}},
      {"tokens wasted, %", {}, {}}};
  for (const std::string& name : names) {
    for (Plot::Panel& panel : plot.panels)
      panel.lines.push_back({name, std::vector<std::optional<double>>(plot.x.size())});
    for (const Cell& cell : cells) {
      if (line_of(cell) != name || cell.ran.empty())
        continue;
      const auto at =
          static_cast<std::size_t>(std::distance(etas.begin(), etas.find(cell.first->eta)));
      std::int64_t oldest = 0;
      for (const CompareRow* row : cell.ran)
        oldest = std::max(oldest, row->staleness_max);
      plot.panels[0].lines.back().values[at] = seconds_of(cell) / seconds_of(*base);
      plot.panels[1].lines.back().values[at] = static_cast<double>(oldest);
      plot.panels[2].lines.back().values[at] =
          100 * mean(cell, [](const auto& r) { return r.wasted; });
    }
  }
  return to_svg(plot);
}

std::optional<std::string> rewards_svg(const PolicyComparison& comparison,
                                       RewardAxis axis,
                                       const std::string& title) {
  const std::vector<Cell> cells = cells_of(comparison);
  std::size_t steps = 0;
  double end = 0, most = 1;
  for (const Cell& cell : cells) {
    for (const auto& curve : cell.rewards) {
      steps = std::max(steps, curve.size());
      end = std::max(end, curve.back().seconds);
      for (const RewardPoint& point : curve)
        most = std::max(most, point.reward);
    }
  }
  if (steps == 0)
    return std::nullopt;
  const bool wall = comparison.time == PolicyComparison::Time::Wall;
  const double unit = wall ? 1 : 3600;
  const std::size_t points = std::min(steps, kMostPoints);
  Plot plot;
  plot.title = title;
  plot.x_label = axis == RewardAxis::Steps ? "updates"
                 : wall                    ? "wall time, s"
                                           : "simulated time, h";
  plot.panels = {{fmt::format("reward, mean of {} updates", kRewardWindow),
                  {},
                  most > 1 ? std::nullopt : std::optional(1.0)}};
  for (std::size_t i = 1; i <= points; ++i) {
    const std::size_t step = i * steps / points;
    plot.x.push_back(axis == RewardAxis::Steps
                         ? static_cast<double>(step)
                         : end / unit * static_cast<double>(i) / static_cast<double>(points));
  }
  for (const Cell& cell : cells) {
    if (cell.rewards.empty())
      continue;
    Plot::Line& line = plot.panels[0].lines.emplace_back();
    line.name = name_of_cell(*cell.first);
    for (const double x : plot.x) {
      line.values.push_back(mean_reward(cell, [&](const auto& curve) -> std::optional<double> {
        if (axis == RewardAxis::Time)
          return reward_at(curve, std::min(x * unit, end));
        const auto step = static_cast<std::size_t>(x);
        return step <= curve.size() ? std::optional(curve[step - 1].reward) : std::nullopt;
      }));
    }
  }
  return to_svg(plot);
}

}  // namespace temper::study
