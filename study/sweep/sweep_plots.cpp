#include "core/text/numbers.hpp"
#include "core/text/svg_plot.hpp"
#include "study/sweep/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace temper::study {
namespace {

constexpr std::size_t kMostPoints = 150;  ///< Per line.

/// The fewest of the first keys of an axis that tell its values apart; 0 if it has only one value.
std::size_t telling_keys(const SweepAxis& axis) {
  for (std::size_t n = 0; n < axis.keys.size(); ++n) {
    std::set<std::vector<std::string>> starts;
    for (const auto& values : axis.values)
      starts.emplace(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n));
    if (starts.size() == axis.values.size())
      return n;
  }
  return axis.keys.size();
}

/// A key of --over: an axis, and a place in its keys.
struct PlotKey {
  std::size_t axis = 0, key = 0;
};

/// The first key whose values are all numbers.
std::optional<PlotKey> number_key(const std::vector<SweepAxis>& over) {
  for (std::size_t a = 0; a < over.size(); ++a) {
    for (std::size_t k = 0; k < over[a].keys.size(); ++k) {
      if (std::ranges::all_of(over[a].values, [&](const auto& v) {
            return parse_number<double>(v[k]).has_value();
          }))
        return PlotKey{a, k};
    }
  }
  return std::nullopt;
}

/// The values that tell a cell from the others, "rule=exact bound=2", without that of `x`.
std::string label_of(const Sweep& sweep, std::size_t cell, std::optional<PlotKey> x) {
  const std::vector<std::string> names = short_names(keys_of(sweep.over, sweep.any));
  const std::vector<std::size_t> places = combination(sweep.over, cell);
  std::vector<std::string> own_names, own_values;
  std::size_t before = 0;  // keys of the axes before
  for (std::size_t a = 0; a < sweep.over.size(); ++a) {
    for (std::size_t k = 0; k < telling_keys(sweep.over[a]); ++k) {
      if (x && x->axis == a && x->key == k)
        continue;
      own_names.push_back(names[before + k]);
      own_values.push_back(sweep.over[a].values[places[a]][k]);
    }
    before += sweep.over[a].keys.size();
  }
  if (own_names.empty())
    return sweep.any.empty() ? "as given" : "best";
  return setting_text(own_names, own_values);
}

/// A reward curve for each run that learned; smoothed.
std::vector<std::vector<RewardPoint>> curves_of(const SweepCell& cell) {
  std::vector<std::vector<RewardPoint>> out;
  for (const auto& rewards : cell.rewards) {
    if (!rewards.empty())
      out.push_back(smoothed(rewards));
  }
  return out;
}

/// Mean over the seeds; none if one of them has no value.
template <class At>
std::optional<double> mean_reward(const std::vector<std::vector<RewardPoint>>& curves, At at) {
  double sum = 0;
  for (const auto& curve : curves) {
    const std::optional<double> value = at(curve);
    if (!value)
      return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(curves.size());
}

}  // namespace

std::optional<std::string> sweep_svg(const Sweep& sweep, const std::string& title) {
  const std::optional<PlotKey> x = number_key(sweep.over);
  if (!x)
    return std::nullopt;
  const auto x_of = [&](std::size_t cell) {
    const std::size_t place = combination(sweep.over, cell)[x->axis];
    return *parse_number<double>(sweep.over[x->axis].values[place][x->key]);
  };
  std::set<double> points;
  std::vector<std::string> lines;
  bool wastes = false;
  for (std::size_t c = 0; c < sweep.cells.size(); ++c) {
    const std::string line = label_of(sweep, c, x);
    if (std::ranges::find(lines, line) == lines.end())
      lines.push_back(line);
    points.insert(x_of(c));
    wastes = wastes || mean_of(sweep.cells[c], &SweepRun::wasted).value_or(0) > 0;
  }
  Plot plot;
  plot.title = title;
  plot.x_label = sweep.over[x->axis].keys[x->key];
  plot.x.assign(points.begin(), points.end());
  plot.panels = {{"trained tokens/s", {}, std::nullopt}, {"cards busy, %", {}, 100}};
  if (wastes)
    plot.panels.push_back({"tokens wasted, %", {}, std::nullopt});
  const std::array fields{&SweepRun::tokens_per_s, &SweepRun::busy, &SweepRun::wasted};
  for (std::size_t p = 0; p < plot.panels.size(); ++p) {
    auto& drawn = plot.panels[p].lines;
    for (const std::string& line : lines)
      drawn.push_back({line, std::vector<std::optional<double>>(plot.x.size())});
    for (std::size_t c = 0; c < sweep.cells.size(); ++c) {
      const std::optional<double> value = mean_of(sweep.cells[c], fields[p]);
      if (!value)
        continue;
      const auto at = std::distance(points.begin(), points.find(x_of(c)));
      std::ranges::find(drawn, label_of(sweep, c, x), &Plot::Line::name)
          ->values[static_cast<std::size_t>(at)] = p == 0 ? *value : 100 * *value;
    }
  }
  return to_svg(plot);
}

std::optional<std::string> rewards_svg(const Sweep& sweep,
                                       RewardAxis axis,
                                       const std::string& title) {
  std::vector<std::vector<std::vector<RewardPoint>>> curves;  // of each cell
  std::size_t steps = 0;
  double end = 0, most = 1;
  for (const SweepCell& cell : sweep.cells) {
    for (const auto& curve : curves.emplace_back(curves_of(cell))) {
      steps = std::max(steps, curve.size());
      end = std::max(end, curve.back().seconds);
      for (const RewardPoint& point : curve)
        most = std::max(most, point.reward);
    }
  }
  if (steps == 0)
    return std::nullopt;
  const bool wall = sweep.time == Sweep::Time::Wall;
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
  for (std::size_t c = 0; c < curves.size(); ++c) {
    if (curves[c].empty())
      continue;
    Plot::Line& line = plot.panels[0].lines.emplace_back();
    line.name = label_of(sweep, c, std::nullopt);
    for (const double x : plot.x) {
      line.values.push_back(mean_reward(curves[c], [&](const auto& curve) -> std::optional<double> {
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
