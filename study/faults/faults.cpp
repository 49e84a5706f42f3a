#include "study/faults/faults.hpp"

#include "core/parallel.hpp"
#include "orchestrator/record/audit.hpp"
#include "orchestrator/run/virtual/in_process_host.hpp"
#include "orchestrator/run/virtual/simulated_actors.hpp"
#include "study/simulate/simulate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <mutex>

namespace temper::study {
namespace {

using orchestrator::ResolvedPipeline;

/// Longer than any requested time.
constexpr std::uint64_t kEndless = std::uint64_t{1} << 40;

/// All runs, in row order; the seeds of a row follow each other.
struct Plan {
  std::vector<std::uint64_t> every;
  std::vector<std::int32_t> spares;
  std::vector<ResolvedPipeline> runs;
};

Result<Plan> make_plan(const FaultsOptions& options) {
  orchestrator::PipelineConfig config = options.config;
  config.steps = kEndless;
  Plan plan{options.every, options.spares, {}};
  if (plan.every.empty())
    plan.every = {static_cast<std::uint64_t>(config.checkpoint.every)};
  if (plan.spares.empty())
    plan.spares = {config.simulation.faults.spares};
  for (const std::int32_t spares : plan.spares) {
    for (const std::uint64_t every : plan.every) {
      for (std::uint64_t seed = 0; seed < options.seeds; ++seed) {
        config.checkpoint.every = static_cast<std::int32_t>(every);
        config.simulation.faults.spares = spares;
        config.simulation.faults.seed = options.config.simulation.faults.seed + seed;
        TEMPER_TRY_STATUS(check_rules(config));
        TEMPER_TRY(ResolvedPipeline pipeline, orchestrator::resolve(config));
        plan.runs.push_back(
            sampled_pipeline(pipeline, largest_weight(pipeline, options.response_weight)));
      }
    }
  }
  return plan;
}

double share(Duration part, Duration of) {
  return of > Duration{} ? seconds(part) / seconds(of) : 0;
}

FaultsRow row_of(std::span<const FaultsRun> runs) {
  FaultsRow row;
  orchestrator::TimeLost sum;
  row.goodput_min = 1;
  const auto n = static_cast<double>(runs.size());
  for (const FaultsRun& run : runs) {
    const orchestrator::TimeLost& t = run.time;
    sum.wall += t.wall;
    sum.useful += t.useful;
    sum.start += t.start;
    sum.down += t.down;
    sum.checkpoint += t.checkpoint;
    sum.missing += t.missing;
    sum.again += t.again;
    sum.checkpoints += t.checkpoints;
    row.rollbacks += static_cast<double>(t.rollbacks) / n;
    row.losses += static_cast<double>(t.losses) / n;
    row.updates += static_cast<double>(t.updates) / n;
    row.goodput_min = std::min(row.goodput_min, t.goodput());
    row.goodput_max = std::max(row.goodput_max, t.goodput());
  }
  row.goodput = sum.goodput();
  row.start = share(sum.start, sum.wall);
  row.down = share(sum.down, sum.wall);
  row.checkpoint = share(sum.checkpoint, sum.wall);
  row.missing = share(sum.missing, sum.wall);
  row.again = share(sum.again, sum.wall);
  return row;
}

/// Mean useful seconds of an update over all runs.
double seconds_per_update(const std::vector<FaultsRun>& runs) {
  double useful = 0, updates = 0;
  for (const FaultsRun& run : runs) {
    useful += seconds(run.time.useful);
    updates += static_cast<double>(run.time.updates);
  }
  return updates > 0 ? useful / updates : 0;
}

}  // namespace

Result<FaultsRun> run_with_faults(const ResolvedPipeline& pipeline, Time until) {
  orchestrator::VirtualOptions options;
  options.pipeline = pipeline;
  std::vector<std::string> names;
  for (const orchestrator::ActorSpec& spec : pipeline.slots)
    names.push_back(spec.name);
  orchestrator::Goodput goodput;
  orchestrator::Auditor auditor;
  Time now{};
  int stops = 0;
  options.stops = [&] { return now >= until ? ++stops : 0; };  // The second request stops at once.
  orchestrator::RunObserver observer;
  observer.on_record = [&](const orchestrator::Record& record) {
    now = record.time;
    if (now <= until)
      goodput.feed(record);
    auditor.feed(record);
  };
  TEMPER_TRY(
      const auto driver,
      orchestrator::VirtualDriver::create(std::move(options),
                                          std::make_unique<orchestrator::InProcessHost>(
                                              std::move(names), orchestrator::SimulatedActors()),
                                          std::move(observer),
                                          Log::discard()));
  const orchestrator::RunOutcome outcome = driver->run();
  if (now < until)
    return Error{ErrorCode::Internal, outcome.finish.reason};
  const auto audit = auditor.report();
  if (!audit.violations.empty())
    return Error{ErrorCode::Internal,
                 "the audit of the run found violations: " + audit.violations.front()};
  FaultsRun run{goodput.lost(until), 0};
  run.seconds_per_update = seconds_per_update({run});
  return run;
}

namespace {

/// A table about checkpoints needs failures, checkpoints, and checkpoints that take time.
Status check_question(const FaultsOptions& options) {
  const actors::SimulationConfig& simulation = options.config.simulation;
  std::vector<std::string> issues;
  if (!simulation.faults.any()) {
    issues.emplace_back(
        "no failures are configured; set simulation.faults.rate=1 for the published rates");
  }
  if (simulation.checkpoint.bandwidth.count() <= 0) {
    issues.emplace_back(
        "simulation.checkpoint.bandwidth: found 0, so checkpoints take no time and all intervals "
        "look alike; set the write bandwidth of a checkpoint, such as "
        "simulation.checkpoint.bandwidth=32GB/s");
  }
  if (options.every.empty() && options.config.checkpoint.every == 0) {
    issues.emplace_back(
        "checkpoint.every: found 0, so no checkpoint is made; name the intervals to compare, such "
        "as --every 4,16,64");
  }
  return issues.empty() ? Status() : invalid_input(fmt::format("{}", fmt::join(issues, "\n  ")));
}

}  // namespace

Result<FaultsReport> study_faults(const FaultsOptions& options) {
  TEMPER_TRY_STATUS(check_question(options));
  TEMPER_TRY(const Plan plan, make_plan(options));
  std::vector<Result<FaultsRun>> done(plan.runs.size(), Result<FaultsRun>(FaultsRun{}));
  std::mutex mutex;
  std::size_t finished = 0;
  for_each_index(plan.runs.size(), options.threads, [&](std::size_t i) {
    done[i] = run_with_faults(plan.runs[i], Time(options.time));
    const std::lock_guard lock(mutex);
    if (options.on_progress)
      options.on_progress(++finished, plan.runs.size());
  });
  std::vector<FaultsRun> runs;
  for (Result<FaultsRun>& run : done) {
    TEMPER_TRY(FaultsRun one, std::move(run));
    runs.push_back(one);
  }
  FaultsReport report;
  report.days = seconds(options.time) / 86400;
  report.seeds = options.seeds;
  report.response_weight = plan.runs.front().simulation->response_weight;
  report.seconds_per_update = seconds_per_update(runs);
  const CheckpointTerms terms = checkpoint_terms(plan.runs.front());
  report.save_s = terms.save_s;
  if (options.config.simulation.faults.trace.empty() && std::isfinite(terms.failures_s)) {
    report.failures_s = terms.failures_s;
    report.young_s = young_interval(terms);
    report.daly_s = daly_interval(terms);
  }
  std::size_t first = 0;
  for (const std::int32_t spares : plan.spares) {
    for (const std::uint64_t every : plan.every) {
      FaultsRow row = row_of(std::span(runs).subspan(first, options.seeds));
      row.spares = spares;
      row.every = every;
      row.interval_s = static_cast<double>(every) * report.seconds_per_update;
      report.rows.push_back(row);
      first += options.seeds;
    }
  }
  return report;
}

}  // namespace temper::study
