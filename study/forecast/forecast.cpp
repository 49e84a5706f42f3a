#include "study/forecast/forecast.hpp"

#include "core/files.hpp"
#include "core/text/csv.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace temper::study {
namespace {

namespace fs = std::filesystem;

std::string folder_of(std::size_t run, int repeat) {
  return fmt::format("{:02}-{}", run + 1, repeat + 1);
}

/// Writes the predictions to disk before the first run starts.
Status write_forecasts(const ForecastOptions& options, const std::vector<ForecastRun>& runs) {
  if (options.out.empty())
    return {};
  TEMPER_TRY_STATUS(make_folder(options.out));
  std::string csv = "setting,trained_per_s,generated_per_s,busy,staleness_mean,seconds,reason\n";
  for (const ForecastRun& run : runs) {
    const RunFigures& f = run.predicted;
    csv += csv_line({run.setting,
                     fmt::format("{:.1f}", f.trained_per_s),
                     fmt::format("{:.1f}", f.generated_per_s),
                     fmt::format("{:.4f}", f.busy),
                     fmt::format("{:.4f}", f.staleness_mean),
                     fmt::format("{:.4f}", f.seconds),
                     run.reason});
  }
  return write_file_atomically(options.out / "forecasts.csv", csv);
}

RunFigures mean_of(const std::vector<RunFigures>& runs) {
  RunFigures mean;
  const auto n = static_cast<double>(runs.size());
  for (const RunFigures& f : runs) {
    mean.trained_per_s += f.trained_per_s / n;
    mean.generated_per_s += f.generated_per_s / n;
    mean.busy += f.busy / n;
    mean.staleness_mean += f.staleness_mean / n;
    mean.seconds += f.seconds / n;
    for (const auto& [state, share] : f.states)
      mean.states[state] += share / n;
  }
  return mean;
}

double half_range(const std::vector<RunFigures>& runs) {
  const auto [least, most] = std::ranges::minmax_element(runs, {}, &RunFigures::trained_per_s);
  return (most->trained_per_s - least->trained_per_s) / 2 / mean_of(runs).trained_per_s;
}

class Checker {
 public:
  Checker(const ForecastOptions& options,
          std::vector<orchestrator::PipelineConfig> configs,
          Forecasts& out)
      : options_(options), configs_(std::move(configs)), out_(out), figures_(configs_.size()) {}

  Status run() {
    // Runs in rounds, so that a drift of the machine's speed affects all settings alike.
    for (int repeat = 0; repeat < options_.repeats; ++repeat) {
      for (std::size_t i = 0; i < configs_.size(); ++i) {
        if (!out_.runs[i].reason.empty())
          continue;
        TEMPER_TRY_STATUS(run_one(i, repeat));
        if (out_.end == Forecasts::End::Stopped)
          return {};
      }
    }
    for (std::size_t i = 0; i < configs_.size(); ++i) {
      if (figures_[i].empty())
        continue;
      out_.runs[i].measured = mean_of(figures_[i]);
      out_.runs[i].noise = half_range(figures_[i]);
    }
    return {};
  }

 private:
  Status run_one(std::size_t i, int repeat) {
    orchestrator::PipelineConfig config = configs_[i];
    config.run_dir = fs::absolute(options_.out / "runs" / folder_of(i, repeat)).string();
    TEMPER_TRY(const orchestrator::RunEnd finish, options_.start_run(config, {}));
    ForecastRun& run = out_.runs[i];
    if (finish.stopped)
      out_.end = Forecasts::End::Stopped;
    if (!finish.ok) {
      run.reason = finish.reason;
      return {};
    }
    TEMPER_TRY(const orchestrator::ResolvedPipeline pipeline, orchestrator::resolve(config));
    TEMPER_TRY(const Figures figures,
               figures_of_log(fs::path(config.run_dir) / "events.log", pipeline));
    figures_[i].push_back(run_figures(figures));
    if (options_.on_line) {
      options_.on_line(fmt::format("{}: {:.0f} trained tokens/s, predicted {:.0f}",
                                   run.setting,
                                   figures_[i].back().trained_per_s,
                                   run.predicted.trained_per_s));
    }
    return {};
  }

  const ForecastOptions& options_;
  const std::vector<orchestrator::PipelineConfig> configs_;
  Forecasts& out_;
  std::vector<std::vector<RunFigures>> figures_;
};

}  // namespace

RunFigures run_figures(const Figures& figures) {
  const Rates& r = figures.whole;
  return {r.trained_per_s, r.generated_per_s, r.busy, r.staleness_mean, r.seconds, r.states};
}

Result<std::vector<orchestrator::PipelineConfig>> forecast_configs(const ForecastOptions& options) {
  TEMPER_TRY(const auto settings, combinations(options.over));
  std::vector<orchestrator::PipelineConfig> configs;
  for (const std::vector<std::string>& own : settings) {
    std::vector<std::string> sets = options.sets;
    sets.insert(sets.end(), own.begin(), own.end());
    TEMPER_TRY(orchestrator::PipelineConfig config, options.config.load_valid(sets));
    configs.push_back(std::move(config));
  }
  return configs;
}

Result<Forecasts> forecast(const ForecastOptions& options) {
  TEMPER_TRY(const auto configs, forecast_configs(options));
  TEMPER_TRY(const auto settings, combinations(options.over));
  if (options.repeats > 0 && fs::exists(options.out / "runs")) {
    return invalid_input(
        fmt::format("{} already exists; name another --out", (options.out / "runs").string()));
  }
  const auto figures = forecast_all(configs, options.calibration, options.simulate);
  Forecasts out;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    ForecastRun run;
    run.setting = fmt::format("{}", fmt::join(settings[i], " "));
    if (figures[i])
      run.predicted = run_figures(*figures[i]);
    else
      run.reason = figures[i].error().context;
    out.runs.push_back(std::move(run));
  }
  TEMPER_TRY_STATUS(write_forecasts(options, out.runs));
  if (options.repeats > 0)
    TEMPER_TRY_STATUS(Checker(options, configs, out).run());
  judge(out);
  return out;
}

void judge(Forecasts& forecasts) {
  forecasts.mean_error.reset();
  forecasts.pairs = forecasts.ranked = 0;
  std::vector<ForecastRun*> measured;
  for (ForecastRun& run : forecasts.runs) {
    if (!run.measured)
      continue;
    run.error = run.predicted.trained_per_s / run.measured->trained_per_s - 1;
    measured.push_back(&run);
  }
  if (measured.empty())
    return;
  double sum = 0;
  for (const ForecastRun* run : measured)
    sum += std::abs(run->error);
  forecasts.mean_error = sum / static_cast<double>(measured.size());
  for (std::size_t i = 0; i < measured.size(); ++i) {
    for (std::size_t j = i + 1; j < measured.size(); ++j) {
      const ForecastRun *slow = measured[i], *fast = measured[j];
      if (slow->measured->trained_per_s > fast->measured->trained_per_s)
        std::swap(slow, fast);
      const double apart = fast->measured->trained_per_s / slow->measured->trained_per_s - 1;
      if (apart <= std::max(slow->noise, fast->noise))
        continue;
      ++forecasts.pairs;
      forecasts.ranked += fast->predicted.trained_per_s > slow->predicted.trained_per_s ? 1 : 0;
    }
  }
}

std::string forecasts_text(const Forecasts& forecasts) {
  std::size_t width = 8;
  for (const ForecastRun& run : forecasts.runs)
    width = std::max(width, run.setting.size());
  const bool checked = forecasts.mean_error.has_value();
  std::string out = fmt::format("{:<{}}  {:>18}", "", width, "trained tokens/s");
  if (checked)
    out += fmt::format(" {:>17} {:>15} {:>17}", "", "busy", "mean staleness");
  out += fmt::format("\n{:<{}}  {:>9}", "setting", width, "predicted");
  out += checked ? fmt::format(" {:>8} {:>7} {:>8}  {:>6} {:>7}  {:>7} {:>7}",
                               "measured",
                               "error",
                               "noise",
                               "pred.",
                               "meas.",
                               "pred.",
                               "meas.")
                 : fmt::format(
                       " {:>12} {:>7} {:>10} {:>9}", "generated/s", "busy", "staleness", "seconds");
  out += "\n";
  for (const ForecastRun& run : forecasts.runs) {
    out += fmt::format("{:<{}}  ", run.setting, width);
    const RunFigures& p = run.predicted;
    if (!run.reason.empty())
      out += run.reason;
    else if (run.measured) {
      out += fmt::format(
          "{:>9.0f} {:>8.0f} {:>+6.1f}% {:>7.1f}%  {:>5.1f}% {:>6.1f}%  {:>7.2f} {:>7.2f}",
          p.trained_per_s,
          run.measured->trained_per_s,
          100 * run.error,
          100 * run.noise,
          100 * p.busy,
          100 * run.measured->busy,
          p.staleness_mean,
          run.measured->staleness_mean);
    } else {
      out += fmt::format("{:>9.0f} {:>12.0f} {:>6.1f}% {:>10.2f} {:>9.2f}",
                         p.trained_per_s,
                         p.generated_per_s,
                         100 * p.busy,
                         p.staleness_mean,
                         p.seconds);
    }
    out += "\n";
  }
  if (checked) {
    out += fmt::format(
        "mean absolute error of trained tokens/s {:.1f} %; {} of {} pairs whose measured "
        "difference exceeds the noise are predicted in the right order\n",
        100 * *forecasts.mean_error,
        forecasts.ranked,
        forecasts.pairs);
  }
  return out;
}

}  // namespace temper::study
