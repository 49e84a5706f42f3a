// Cost of hardware failures for a run on simulated cards, by checkpoint interval and number of
// spare hosts. Each combination runs in virtual time for the requested duration, with the real
// scheduler and the failures of simulation.faults, once per seed; every run is audited. Breakdown
// of its time, and the definition of goodput: orchestrator/metrics/goodput.hpp.
//
// A sampled run (study/simulate/simulate.hpp) costs a fraction of the computation; its updates take
// as long as those of the full run.
//
// Equal options give equal reports, whatever the number of threads.
#pragma once

#include "core/describe.hpp"
#include "orchestrator/metrics/goodput.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "study/faults/checkpoint_interval.hpp"

#include <functional>
#include <string>
#include <vector>

namespace temper::study {

struct FaultsOptions {
  orchestrator::PipelineConfig config;
  Duration time = std::chrono::hours(240);  ///< Virtual time of each run.
  std::vector<std::uint64_t> every;         ///< Values of checkpoint.every; empty: as configured.
  std::vector<std::int32_t> spares;         ///< Empty: as configured.
  std::uint64_t seeds = 1;
  std::int64_t response_weight = 1;  ///< Above 1: sampled runs of at most this weight.
  int threads = 1;
  /// Called after each run, by one thread at a time.
  std::function<void(std::size_t done, std::size_t of)> on_progress;
};

/// Result of one run.
struct FaultsRun {
  orchestrator::TimeLost time;
  double seconds_per_update = 0;  ///< Useful seconds per kept update.
};

/// Error: the configuration is invalid, the run ended before `until`, or its audit found
/// violations.
Result<FaultsRun> run_with_faults(const orchestrator::ResolvedPipeline& pipeline, Time until);

struct FaultsRow {
  std::uint64_t every = 0;  ///< Updates between checkpoints.
  double interval_s = 0;    ///< Useful seconds between checkpoints.
  std::int32_t spares = 0;
  double goodput = 0;  ///< Mean over the seeds.
  double goodput_min = 0, goodput_max = 0;
  // Shares of the time of all runs; with goodput they add up to 1.
  double start = 0, down = 0, checkpoint = 0, missing = 0, again = 0;
  double rollbacks = 0, losses = 0, updates = 0;  ///< Mean per run.
};
void describe(auto& v, FaultsRow& r) {
  v.field(1, "every", r.every);
  v.field(2, "interval_s", r.interval_s);
  v.field(3, "spares", r.spares);
  v.field(4, "goodput", r.goodput);
  v.field(5, "goodput_min", r.goodput_min);
  v.field(6, "goodput_max", r.goodput_max);
  v.field(7, "start", r.start);
  v.field(8, "down", r.down);
  v.field(9, "checkpoint", r.checkpoint);
  v.field(10, "missing", r.missing);
  v.field(11, "again", r.again);
  v.field(12, "rollbacks", r.rollbacks);
  v.field(13, "losses", r.losses);
  v.field(14, "updates", r.updates);
}

struct FaultsReport {
  double days = 0;
  std::uint64_t seeds = 0;
  std::int64_t response_weight = 1;
  double save_s = 0;
  double failures_s =
      0;  ///< Mean time between failures (CheckpointTerms); 0: no failures are planned by rate.
  double young_s = 0, daly_s = 0;
  double seconds_per_update = 0;
  std::vector<FaultsRow> rows;  ///< Sorted by spares, then by interval.
};
void describe(auto& v, FaultsReport& r) {
  v.field(1, "days", r.days);
  v.field(2, "seeds", r.seeds);
  v.field(3, "response_weight", r.response_weight);
  v.field(4, "save_s", r.save_s);
  v.field(5, "failures_s", r.failures_s);
  v.field(6, "young_s", r.young_s);
  v.field(7, "daly_s", r.daly_s);
  v.field(8, "seconds_per_update", r.seconds_per_update);
  v.field(9, "rows", r.rows);
}

/// Errors: as run_with_faults(); no failures are configured.
Result<FaultsReport> study_faults(const FaultsOptions& options);

/// Goodput over the interval, a line per number of spares; and, if failures come at rates, the
/// share of time that Young's equation leaves: 1 - C / T - T / 2M (checkpoint_interval.hpp).
std::string faults_svg(const FaultsReport& report);

/// The report as text.
std::string faults_text(const FaultsReport& report);

}  // namespace temper::study
