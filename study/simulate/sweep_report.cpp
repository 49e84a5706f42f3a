#include "core/text/csv.hpp"
#include "core/text/numbers.hpp"
#include "core/text/svg_plot.hpp"
#include "core/text/table.hpp"
#include "study/simulate/sweep.hpp"

#include <fmt/format.h>

namespace temper::study {
namespace {

std::vector<std::string> head(const Sweep& sweep) {
  std::vector<std::string> out;
  for (const auto* axes : {&sweep.over, &sweep.any}) {
    for (const SweepAxis& axis : *axes)
      out.push_back(axis.name());
  }
  return out;
}

/// The values of a point; "-" for free keys if nothing could run.
std::vector<std::string> place(const Sweep& sweep, const SweepPoint& point) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < sweep.over.size(); ++i)
    out.push_back(sweep.over[i].text(point.over[i]));
  for (std::size_t i = 0; i < sweep.any.size(); ++i)
    out.push_back(point.any.empty() ? "-" : sweep.any[i].text(point.any[i]));
  return out;
}

std::string trainer_text(const orchestrator::PipelineConfig& c) {
  const actors::TrainerEngineConfig& t = c.simulation.trainer;
  return fmt::format("tp {} pp {} cp {} ep {} {}", t.tp, t.pp, t.cp, t.ep, t.micro_batch_tokens);
}

/// "bound 2" for staleness.bound; the first of keys that change together.
std::string line_name(const SweepAxis& axis, std::size_t place) {
  const std::string& key = axis.keys.front();
  return fmt::format("{} {}", key.substr(key.rfind('.') + 1), axis.values[place].front());
}

Result<std::vector<double>> numbers(const SweepAxis& axis) {
  std::vector<double> out;
  for (const auto& values : axis.values) {
    const std::string& text = values.front();
    const auto value = parse_number<double>(text);
    if (!value)
      return invalid_input(
          fmt::format("--plot: {1}: expected numbers, found `{0}`", text, axis.name()));
    if (!out.empty() && *value <= out.back())
      return invalid_input(fmt::format("--plot: {}: expected ascending values", axis.name()));
    out.push_back(*value);
  }
  return out;
}

}  // namespace

std::string sweep_text(const Sweep& sweep) {
  std::vector<std::vector<std::string>> table{head(sweep)};
  for (const char* name :
       {"tokens/s", "busy", "staleness", "s/update", "trainer", "KV share", "refused"})
    table.front().emplace_back(name);
  std::string reasons;
  for (const SweepPoint& point : sweep.points) {
    std::vector<std::string>& row = table.emplace_back(place(sweep, point));
    const std::string refused = fmt::format("{} of {}", point.refused, point.tried);
    if (!point.figures) {
      row.insert(row.end(), {"-", "-", "-", "-", "-", "-", refused});
      reasons += fmt::format("  {}: {}\n", fmt::join(place(sweep, point), " "), point.reason);
      continue;
    }
    const Rates& r = point.figures->steady;
    row.insert(row.end(),
               {thousands_text(r.sustained_per_s, 1),
                fmt::format("{:.0f} %", 100 * r.busy),
                fmt::format("{:.2f}", r.staleness_mean),
                fmt::format("{:.0f}", r.seconds_per_update),
                trainer_text(*point.config),
                fmt::format("{:.2f}", point.config->simulation.rollout.kv_share),
                refused});
  }
  return bar_table(table) + (reasons.empty() ? "" : "\nnot run\n" + reasons);
}

std::string sweep_csv(const Sweep& sweep) {
  std::vector<std::string> names = head(sweep);
  for (const char* name : {"tokens_per_s",
                           "trained_per_s",
                           "generated_per_s",
                           "busy",
                           "staleness_mean",
                           "seconds_per_update",
                           "trainer",
                           "kv_share",
                           "tried",
                           "refused",
                           "reason"})
    names.emplace_back(name);
  std::string out = csv_line(names);
  for (const SweepPoint& point : sweep.points) {
    std::vector<std::string> row = place(sweep, point);
    const Rates r = point.figures ? point.figures->steady : Rates{};
    for (const double value : {r.sustained_per_s, r.trained_per_s, r.generated_per_s})
      row.push_back(fmt::format("{:.1f}", value));
    row.push_back(fmt::format("{:.4f}", r.busy));
    row.push_back(fmt::format("{:.3f}", r.staleness_mean));
    row.push_back(fmt::format("{:.1f}", r.seconds_per_update));
    row.push_back(point.config ? trainer_text(*point.config) : "");
    row.push_back(point.config ? fmt::format("{:.2f}", point.config->simulation.rollout.kv_share)
                               : "");
    row.push_back(fmt::format("{}", point.tried));
    row.push_back(fmt::format("{}", point.refused));
    row.push_back(point.reason);
    out += csv_line(row);
  }
  return out;
}

Result<std::string> sweep_svg(const Sweep& sweep, const SweepPlotText& text) {
  if (sweep.over.size() > 2)
    return invalid_input(
        "--plot: expected one or two --over: the x axis, and one line per value of the second");
  Plot plot;
  TEMPER_TRY(plot.x, numbers(sweep.over.front()));
  plot.title = text.title;
  plot.x_label = text.x_label.empty() ? sweep.over.front().name() : text.x_label;
  plot.panels = {{"trained tokens/s", {}, std::nullopt}, {"cards busy, %", {}, 100}};
  const std::size_t lines = sweep.over.size() == 2 ? sweep.over[1].values.size() : 1;
  for (std::size_t l = 0; l < lines; ++l) {
    const std::string name = sweep.over.size() == 2 ? line_name(sweep.over[1], l) : "best";
    for (std::size_t p = 0; p < plot.panels.size(); ++p) {
      Plot::Line& line = plot.panels[p].lines.emplace_back();
      line.name = name;
      for (std::size_t x = 0; x < plot.x.size(); ++x) {
        const SweepPoint& point = sweep.points[x * lines + l];
        std::optional<double>& value = line.values.emplace_back();
        if (point.figures) {
          const Rates& r = point.figures->steady;
          value = p == 0 ? r.sustained_per_s : 100 * r.busy;
        }
      }
    }
  }
  return to_svg(plot);
}

}  // namespace temper::study
