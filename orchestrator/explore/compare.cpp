#include "orchestrator/explore/compare.hpp"

#include "core/files.hpp"
#include "core/nearest_name.hpp"
#include "core/scalar_text.hpp"
#include "core/yaml.hpp"
#include "orchestrator/explore/svg_plot.hpp"
#include "orchestrator/explore/sweep.hpp"
#include "orchestrator/explore/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace temper::orchestrator {
namespace {

constexpr double kMostEta = 1024;  // as in the configuration

/// To so many parts of one; short in print.
double rounded(double value, double parts) {
  return std::round(value * parts) / parts;
}

/// That every combination could be run, if not that it can.
Status check(const CompareOptions& options) {
  for (const std::string& set : options.sets) {
    for (const char* key : {"staleness.policy", "staleness.bound"}) {
      if (set.starts_with(fmt::format("{}=", key)))
        return invalid_input(
            fmt::format("--set {}: --policies and --eta decide {}; leave it out", set, key));
    }
  }
  TEMPER_TRY(const std::string text, read_file(options.config));
  auto read = read_yaml<PipelineConfig>(options.config.string(), text, options.sets);
  if (!read.issues.empty())
    return invalid_input(render(locate(read.document, std::move(read.issues))));
  if (read.value.hardware != HardwareKind::Simulated)
    return invalid_input(
        fmt::format("{}: `hardware: {}`: compare is for simulated hardware for now",
                    options.config.string(),
                    name_of(read.value.hardware)));
  return {};
}

/// What is to be run: policy and bound change together.
SweepAxis axis_of(const CompareOptions& options) {
  SweepAxis axis{{"staleness.policy", "staleness.bound"}, {}};
  const auto add = [&](PolicyRule policy, double eta) {
    axis.values.push_back({std::string(name_of(policy)), fmt::format("{}", eta)});
  };
  if (std::ranges::find(options.policies, PolicyRule::Sync) != options.policies.end())
    add(PolicyRule::Sync, 0);
  for (const double eta : options.etas) {
    for (const PolicyRule policy : options.policies) {
      if (policy != PolicyRule::Sync)
        add(policy, eta);
    }
  }
  return axis;
}

void fill(CompareRow& row, const Figures& figures) {
  const Rates& r = figures.whole;
  const Fates& f = figures.fates;
  row.updates = r.updates;
  row.seconds = rounded(r.seconds, 10);
  row.trained_per_s = rounded(r.trained_per_s, 10);
  row.generated_per_s = rounded(r.generated_per_s, 10);
  row.busy = rounded(r.busy, 1e4);
  row.staleness_max = r.staleness_max;
  row.staleness_mean = rounded(r.staleness_mean, 1e3);
  for (const auto& [age, groups] : f.staleness)
    row.staleness += fmt::format("{}{}:{}", row.staleness.empty() ? "" : " ", age, groups);
  row.wasted = rounded(f.wasted_share, 1e4);
  row.groups_trained = f.groups_trained;
  row.groups_evicted = f.groups_evicted;
  row.trained_length = rounded(f.trained_length, 10);
  row.generated_length = rounded(f.generated_length, 10);
  row.begun_length = rounded(f.begun_length, 10);
  if (f.begun_length > 0)
    row.bias = rounded(f.trained_length / f.begun_length, 1e4);
}

}  // namespace

Result<std::vector<PolicyRule>> parse_policies(const std::vector<std::string>& names) {
  const std::vector<std::string> known = enum_names<PolicyRule>();
  std::vector<PolicyRule> out;
  for (const std::string& name : names.empty() ? known : names) {
    const auto policy = from_name<PolicyRule>(name);
    if (!policy) {
      const auto nearest = nearest_name(name, known);
      return invalid_input(fmt::format("--policies {}: {}",
                                       name,
                                       nearest ? fmt::format("did you mean `{}`?", *nearest)
                                               : "known are " + quoted_list(known)));
    }
    if (std::ranges::find(out, *policy) != out.end())
      return invalid_input(fmt::format("--policies: `{}` is named twice", name));
    out.push_back(*policy);
  }
  return out;
}

Result<std::vector<double>> parse_etas(const std::vector<std::string>& texts) {
  std::vector<double> out;
  for (const std::string& text : texts) {
    double eta = 0;
    const auto [stop, errc] = std::from_chars(text.data(), text.data() + text.size(), eta);
    if (errc != std::errc{} || stop != text.data() + text.size() || !(eta >= 0 && eta <= kMostEta))
      return invalid_input(
          fmt::format("--eta: expected numbers from 0 to {}, found `{}`", kMostEta, text));
    if (std::ranges::find(out, eta) != out.end())
      return invalid_input(fmt::format("--eta: {} is named twice", eta));
    out.push_back(eta);
  }
  return out;
}

Result<std::vector<CompareRow>> compare(const CompareOptions& options) {
  TEMPER_TRY_STATUS(check(options));
  SweepOptions sweep;
  sweep.config = options.config;
  sweep.sets = options.sets;
  if (options.steps > 0)
    sweep.sets.push_back(fmt::format("steps={}", options.steps));
  sweep.over = {axis_of(options)};
  if (sweep.over.front().values.empty())
    return invalid_input("nothing to compare; name a policy and an eta");
  sweep.evaluate = options.evaluate;
  TEMPER_TRY(const Sweep done, run_sweep(sweep));
  std::vector<CompareRow> rows;
  for (const SweepPoint& point : done.points) {
    const std::vector<std::string>& values = done.over.front().values[point.over.front()];
    CompareRow& row = rows.emplace_back();
    row.policy = values[0];
    std::from_chars(values[1].data(), values[1].data() + values[1].size(), row.eta);
    row.reason = point.reason;
    if (point.figures)
      fill(row, *point.figures);
  }
  return rows;
}

std::string compare_text(const std::vector<CompareRow>& rows) {
  std::vector<std::vector<std::string>> table{{"policy",
                                               "eta",
                                               "time, s",
                                               "tokens/s",
                                               "busy",
                                               "max s",
                                               "mean s",
                                               "wasted",
                                               "groups evicted",
                                               "trained length",
                                               "begun length",
                                               "bias"}};
  std::string reasons;
  for (const CompareRow& r : rows) {
    std::vector<std::string>& line = table.emplace_back();
    line = {r.policy, fmt::format("{}", r.eta)};
    if (!r.reason.empty()) {
      line.resize(table.front().size(), "-");
      reasons += fmt::format("  {} {}: {}\n", r.policy, r.eta, r.reason);
      continue;
    }
    line.insert(line.end(),
                {fmt::format("{:.1f}", r.seconds),
                 fmt::format("{:.1f}k", r.trained_per_s / 1e3),
                 fmt::format("{:.1f} %", 100 * r.busy),
                 fmt::format("{}", r.staleness_max),
                 fmt::format("{:.2f}", r.staleness_mean),
                 fmt::format("{:.1f} %", 100 * r.wasted),
                 fmt::format("{}", r.groups_evicted),
                 fmt::format("{:.0f}", r.trained_length),
                 fmt::format("{:.0f}", r.begun_length),
                 fmt::format("{:.3f}", r.bias)});
  }
  return bar_table(table) + (reasons.empty() ? "" : "\nnot run\n" + reasons);
}

std::string compare_svg(const std::vector<CompareRow>& rows, const std::string& title) {
  std::set<double> etas;
  std::vector<std::string> policies;
  for (const CompareRow& row : rows) {
    etas.insert(row.eta);
    if (std::ranges::find(policies, row.policy) == policies.end())
      policies.push_back(row.policy);
  }
  Plot plot;
  plot.title = title;
  plot.x_label = "eta";
  plot.x.assign(etas.begin(), etas.end());
  plot.panels = {{"time of the run, h", {}, std::nullopt},
                 {"largest s", {}, std::nullopt},
                 {"tokens wasted, %", {}, std::nullopt}};
  for (const std::string& policy : policies) {
    for (Plot::Panel& panel : plot.panels)
      panel.lines.push_back({policy, std::vector<std::optional<double>>(plot.x.size())});
    for (const CompareRow& row : rows) {
      if (row.policy != policy || !row.reason.empty())
        continue;
      const auto at = static_cast<std::size_t>(std::distance(etas.begin(), etas.find(row.eta)));
      plot.panels[0].lines.back().values[at] = row.seconds / 3600;
      plot.panels[1].lines.back().values[at] = static_cast<double>(row.staleness_max);
      plot.panels[2].lines.back().values[at] = 100 * row.wasted;
    }
  }
  return to_svg(plot);
}

}  // namespace temper::orchestrator
