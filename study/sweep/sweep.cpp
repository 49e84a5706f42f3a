#include "study/sweep/sweep.hpp"

#include "core/statistics.hpp"
#include "study/sweep/sweep_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace temper::study {
namespace {

using JobFigures = std::optional<Result<Figures>>;

void fill(SweepRun& run, const Figures& figures, Sweep::Interval interval) {
  const Rates& r = interval == Sweep::Interval::Whole ? figures.whole : figures.steady;
  const TokenAccounts& f = figures.accounts;
  run.updates = r.updates;
  run.seconds = rounded(r.seconds, 1e3);
  run.tokens_per_s = rounded(r.sustained_per_s, 10);
  run.trained_per_s = rounded(r.trained_per_s, 10);
  run.generated_per_s = rounded(r.generated_per_s, 10);
  run.busy = rounded(r.busy, 1e4);
  run.staleness_max = r.staleness_max;
  if (r.cost) {
    run.tokens_per_price = r.cost->tokens_per_price;
    run.tokens_per_kwh = r.cost->tokens_per_kwh;
  }
  run.staleness_mean = rounded(r.staleness_mean, 1e3);
  for (const auto& [age, groups] : f.staleness)
    run.staleness += fmt::format("{}{}:{}", run.staleness.empty() ? "" : " ", age, groups);
  run.wasted = rounded(f.wasted_share, 1e4);
  run.groups_trained = f.groups_trained;
  run.groups_evicted = f.groups_evicted;
  run.trained_length = rounded(f.trained_length, 10);
  run.generated_length = rounded(f.generated_length, 10);
  run.begun_length = rounded(f.begun_length, 10);
  const double all = f.begun_length > 0 ? f.begun_length : f.generated_length;
  if (all > 0)
    run.bias = rounded(f.trained_length / all, 1e4);
}

void fill_learned(SweepRun& run, const Figures& f, double target) {
  run.held_out = f.held_out;
  run.best_held_out = f.best_held_out;
  const LearningFigures l = learning_figures(f.rewards, target);
  run.final_reward = rounded(l.final_reward, 1e4);
  run.steps_to_target = l.steps_to_target;
  if (l.seconds_to_target)
    run.seconds_to_target = rounded(*l.seconds_to_target, 1e3);
}

/// The runs of one combination, with their results.
SweepCell cell_of(std::span<SweepJob> jobs, std::span<JobFigures> figures, const Sweep& sweep) {
  SweepCell cell{jobs.front().values, {}, {}};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SweepRun& run = cell.runs.emplace_back(std::move(jobs[i].run));
    auto& rewards = cell.rewards.emplace_back();
    if (!figures[i]) {
      if (run.end == SweepEnd::Ran)
        run.reason = "stopped on request";
      run.end = SweepEnd::NotRun;
    } else if (!*figures[i]) {
      run.end = SweepEnd::Failed;
      run.reason = figures[i]->error().context;
    } else {
      fill(run, **figures[i], sweep.interval);
      if (jobs[i].config.policy == actors::PolicyKind::Torch) {
        fill_learned(run, **figures[i], sweep.target_reward);
        rewards = std::move((**figures[i]).rewards);
      }
    }
  }
  return cell;
}

/// The fastest of the combinations of free keys.
SweepCell best_of(std::vector<SweepCell> combinations, std::size_t fixed_keys) {
  const auto speed = [](const SweepCell& cell) { return mean_of(cell, &SweepRun::tokens_per_s); };
  const auto ran = [&](const SweepCell& cell) { return speed(cell).has_value(); };
  const auto refused =
      combinations.size() - static_cast<std::size_t>(std::ranges::count_if(combinations, ran));
  SweepCell best = *std::ranges::max_element(combinations, {}, speed);  // nullopt is the least
  best.tried = combinations.size();
  best.refused = refused;
  for (std::size_t i = fixed_keys; i < best.values.size() && !ran(best); ++i)
    best.values[i] = "-";
  return best;
}

}  // namespace

std::optional<double> mean_of(const SweepCell& cell, double SweepRun::*field) {
  double sum = 0, count = 0;
  for (const SweepRun& run : cell.runs) {
    if (run.end == SweepEnd::Ran)
      sum += run.*field, ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / count);
}

std::vector<std::string> keys_of(const std::vector<SweepAxis>& over,
                                 const std::vector<SweepAxis>& any) {
  std::vector<std::string> out;
  for (const auto* axes : {&over, &any}) {
    for (const SweepAxis& axis : *axes)
      out.insert(out.end(), axis.keys.begin(), axis.keys.end());
  }
  return out;
}

std::vector<std::string> short_names(const std::vector<std::string>& keys) {
  const auto last = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  std::vector<std::string> out;
  for (const std::string& key : keys) {
    const auto same = std::ranges::count(keys, last(key), last);
    out.push_back(same == 1 ? last(key) : key);
  }
  return out;
}

std::string setting_text(const std::vector<std::string>& names,
                         const std::vector<std::string>& values) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i)
    out += fmt::format("{}{}={}", i == 0 ? "" : " ", names[i], values[i]);
  return out;
}

Result<Sweep> run_sweep(const SweepOptions& options, std::vector<SweepJob> jobs) {
  Sweep sweep{options.over, options.any, {}, options.layouts, options.target_reward};
  if (options.steady_steps > 0)
    sweep.interval = Sweep::Interval::Steady;
  std::vector<std::size_t> real, simulated;
  std::vector<orchestrator::PipelineConfig> configs;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].run.end == SweepEnd::NotRun)
      continue;
    if (jobs[i].config.hardware == orchestrator::HardwareKind::Local)
      sweep.time = Sweep::Time::Wall;
    if (is_real_run(jobs[i].config)) {
      real.push_back(i);
    } else {
      simulated.push_back(i);
      configs.push_back(jobs[i].config);
    }
  }
  std::vector<JobFigures> figures(jobs.size());
  TEMPER_TRY(sweep.end, make_real_runs(options, jobs, real, figures));
  if (sweep.end == Sweep::End::Stopped)
    configs.clear(), simulated.clear();
  auto results = simulate_all(configs, options.simulate);
  if (options.simulate.stop && options.simulate.stop())
    sweep.end = Sweep::End::Stopped;
  const auto has_begun = [&](const Result<Figures>& result) {
    return sweep.end == Sweep::End::Whole || result ||
           result.error().code != ErrorCode::Unavailable;
  };
  for (std::size_t i = 0; i < simulated.size(); ++i) {
    if (has_begun(results[i]))
      figures[simulated[i]] = std::move(results[i]);
  }

  const std::size_t seeds = std::max<std::size_t>(1, options.seeds.size());
  const std::size_t fixed_keys = keys_of(options.over, {}).size();
  const std::size_t each = combination_count(options.any);
  for (std::size_t at = 0; at < jobs.size();) {
    std::vector<SweepCell> combinations;
    for (; combinations.size() < each; at += seeds) {
      combinations.push_back(cell_of(
          std::span(jobs).subspan(at, seeds), std::span(figures).subspan(at, seeds), sweep));
    }
    sweep.cells.push_back(best_of(std::move(combinations), fixed_keys));
  }
  return sweep;
}

}  // namespace temper::study
