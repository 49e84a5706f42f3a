// Forecasts a list of configurations for this machine from a model of it
// (study/machine/machine_run.hpp), then optionally runs them and compares.
//
// Figures cover whole runs, from the start of the first process to the last update, as in a
// summary. Errors are relative to the measurement. Two configurations are ranked if the measured
// difference exceeds the noise: the larger of the two half ranges over repeats, relative to their
// means.
#pragma once

#include "orchestrator/pipeline/load.hpp"
#include "study/machine/machine_run.hpp"
#include "study/simulate/axes.hpp"
#include "study/sweep/sweep.hpp"

namespace temper::study {

struct ForecastOptions {
  orchestrator::ConfigFile config;
  std::vector<std::string> sets;
  std::vector<SweepAxis> over;  ///< Every combination, the last axis fastest; empty: one run.
  MachineModel calibration;
  SimulateOptions simulate;

  // --- Verification by real runs
  int repeats = 0;            ///< Real runs per configuration; 0: forecast only.
  std::filesystem::path out;  ///< Folder of forecasts.csv and of the runs; required for real runs.
  StartRun start_run;
  std::function<void(const std::string&)> on_line;
};

/// The compared figures of a run.
struct RunFigures {
  double trained_per_s = 0, generated_per_s = 0;
  double busy = 0;
  double staleness_mean = 0;
  double seconds = 0;
  std::map<actors::CardState, double> states;  ///< Shares of card time.
};
RunFigures run_figures(const Figures& figures);

struct ForecastRun {
  std::string setting;  ///< "key=value ..."
  RunFigures predicted;
  std::optional<RunFigures> measured;  ///< Mean over repeats.
  double noise = 0;                    ///< Half the range of trained tokens/s over their mean.
  double error = 0;                    ///< Relative error of trained tokens/s.
  std::string reason;                  ///< Why it could not be forecast or run.
};

struct Forecasts {
  std::vector<ForecastRun> runs;
  std::optional<double> mean_error;  ///< Mean absolute error of trained tokens/s.
  std::size_t pairs = 0;   ///< Pairs of configurations whose measured difference exceeds the noise.
  std::size_t ranked = 0;  ///< Of these, pairs predicted in the measured order.
  enum class End { Whole, Stopped } end = End::Whole;
};

/// The configurations, in order. Errors: one cannot be read; a duplicate value; too many.
Result<std::vector<orchestrator::PipelineConfig>> forecast_configs(const ForecastOptions& options);

/// Errors, before any run starts: as forecast_configs(); the output folder already exists.
Result<Forecasts> forecast(const ForecastOptions& options);

/// Computes error, mean_error, pairs and ranked from predicted and measured figures.
void judge(Forecasts& forecasts);

std::string forecasts_text(const Forecasts& forecasts);

void describe(auto& v, RunFigures& f) {
  v.field(1, "trained_per_s", f.trained_per_s);
  v.field(2, "generated_per_s", f.generated_per_s);
  v.field(3, "busy", f.busy);
  v.field(4, "staleness_mean", f.staleness_mean);
  v.field(5, "seconds", f.seconds);
  v.field(6, "states", f.states);
}
void describe(auto& v, ForecastRun& r) {
  v.field(1, "setting", r.setting);
  v.field(2, "predicted", r.predicted);
  v.field(3, "measured", r.measured);
  v.field(4, "noise", r.noise);
  v.field(5, "error", r.error);
  v.field(6, "reason", r.reason);
}
void describe(auto& v, Forecasts& p) {
  v.field(1, "runs", p.runs);
  v.field(2, "mean_error", p.mean_error);
  v.field(3, "pairs", p.pairs);
  v.field(4, "ranked", p.ranked);
}

}  // namespace temper::study
