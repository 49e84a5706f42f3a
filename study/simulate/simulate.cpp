#include "study/simulate/simulate.hpp"

#include "actors/simulation/lengths.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "core/parallel.hpp"
#include "core/thread_annotations.hpp"
#include "orchestrator/metrics/summary.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/validate.hpp"
#include "orchestrator/record/sentences.hpp"
#include "orchestrator/run/virtual/in_process_host.hpp"
#include "orchestrator/run/virtual/simulated_actors.hpp"
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace temper::study {
namespace {

using actors::CardState;

/// A sampled run keeps room for at least this many groups per engine. A group is dispatched whole,
/// so (size - 1) / 2 slots of an engine are empty on average, which is too large a share of a small
/// engine.
constexpr std::int64_t kLeastGroups = 8;

/// FinishedCounter intervals of every timeline; they are cut once the window is known.
class FinishedSlices {
 public:
  void watch(orchestrator::Timeline& timeline) {
    timeline.set_sink([this, &timeline](CardId first, const orchestrator::CardSlice& slice) {
      const auto& lines = timeline.lines();
      const auto line = std::ranges::find_if(
          lines, [&](const std::vector<CardId>& cards) { return cards.front() == first; });
      slices_.push_back({slice.begin, slice.end, slice.state, std::ssize(*line)});
    });
  }
  /// Card time per state within [begin, end).
  orchestrator::StateTimes within(Time begin, Time end) const {
    orchestrator::StateTimes times{};
    for (const Slice& s : slices_) {
      const Duration part = std::min(s.end, end) - std::max(s.begin, begin);
      if (part > Duration{})
        times[orchestrator::index_of(s.state)] += part * s.cards;
    }
    return times;
  }

 private:
  struct Slice {
    Time begin, end;
    CardState state;
    std::int64_t cards;
  };
  std::vector<Slice> slices_;
};

Rates whole_of(const orchestrator::Summary& s, const orchestrator::RunMetrics& metrics) {
  Rates r;
  r.updates = metrics.history().count();
  r.seconds = s.wall_s;
  r.seconds_per_update = r.updates > 0 ? s.wall_s / static_cast<double>(r.updates) : 0;
  r.trained_per_s = s.tokens.trained_per_s;
  r.generated_per_s = s.tokens.generated_per_s;
  r.sustained_per_s = r.trained_per_s;
  r.busy = s.utilization.busy;
  r.states = s.utilization.states;
  r.staleness_mean = s.staleness.mean;
  r.staleness_max = s.staleness.max;
  r.cost = s.cost;
  return r;
}

TokenAccounts fates_of(const orchestrator::Summary& s) {
  TokenAccounts f;
  f.generated = s.tokens.generated;
  f.wasted = s.wasted_tokens;
  if (f.generated > 0)
    f.wasted_share = static_cast<double>(f.wasted) / static_cast<double>(f.generated);
  f.trained_length = s.lengths.mean;
  f.generated_length = s.lengths.generated_mean;
  f.groups_trained = s.groups.trained;
  f.groups_evicted = s.groups.evicted;
  f.staleness = s.staleness.histogram;
  return f;
}

/// Groups that a run begins for training are numbered from 0.
class DispatchedGroups {
 public:
  void feed(const orchestrator::Record& record) {
    for (const orchestrator::Command& command : record.commands) {
      const auto* dispatch = std::get_if<orchestrator::command::Dispatch>(&command);
      if (dispatch != nullptr && !orchestrator::is_evaluation(dispatch->group))
        groups_ = std::max(groups_, dispatch->group.value() + 1);
    }
  }
  double mean_length(const actors::LengthConfig& config,
                     const orchestrator::PipelineConfig& pipeline) const {
    const actors::Lengths lengths(config, pipeline.seed, actors::kResponseLengths);
    const auto per_group = static_cast<std::uint64_t>(pipeline.algorithm.responses_per_group);
    const std::uint64_t responses = groups_ * per_group;
    std::int64_t sum = 0;
    for (std::uint64_t r = 0; r < responses; ++r)
      sum += lengths.of(r, r / per_group).count();
    return responses == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(responses);
  }

 private:
  std::uint64_t groups_ = 0;
};

/// Counts between the completions of two updates.
Rates between(const orchestrator::RunMetrics& metrics,
              const orchestrator::Update& first,
              const orchestrator::Update& last,
              const FinishedSlices& slices,
              const orchestrator::CostSection& cost) {
  Rates r;
  r.updates = last.version.value() - first.version.value();
  r.seconds = seconds(last.time - first.time);
  r.seconds_per_update = r.seconds / static_cast<double>(r.updates);
  const auto rate = [&](Tokens tokens) { return static_cast<double>(tokens.count()) / r.seconds; };
  r.trained_per_s = rate(last.tokens.trained - first.tokens.trained);
  r.generated_per_s = rate(last.tokens.generated - first.tokens.generated);
  const double responses =
      metrics.lengths().mean() * static_cast<double>(metrics.lengths().total());
  r.sustained_per_s = std::min(
      r.trained_per_s,
      r.generated_per_s * static_cast<double>(metrics.tokens().trained.count()) / responses);
  const orchestrator::StateTimes times = slices.within(first.time, last.time);
  const double all = r.seconds * static_cast<double>(metrics.timeline().cards().size());
  for (const auto& [state, name] : EnumNames<CardState>::value) {
    r.states[state] = seconds(times[orchestrator::index_of(state)]) / all;
    if (orchestrator::is_busy(state))
      r.busy += r.states[state];
  }
  for (const orchestrator::Update& update : metrics.updates()) {
    if (update.version <= first.version || update.version > last.version)
      continue;
    r.staleness_mean += update.staleness_mean / static_cast<double>(r.updates);
    r.staleness_max = std::max(r.staleness_max, static_cast<std::int64_t>(update.staleness_max));
  }
  r.cost = orchestrator::cost_of(cost,
                                 orchestrator::paid_cards(metrics.config().actors),
                                 {r.seconds, r.states, r.seconds * r.sustained_per_s});
  return r;
}

/// Observers of a run's records.
struct RunObservers {
  orchestrator::RunMetrics metrics;
  FinishedSlices slices;
  DispatchedGroups groups;
  std::map<CardState, double> spans;
  std::set<std::size_t> turn_ends;  ///< Updates that were complete when all cards left training.

  RunObservers() : metrics(orchestrator::UpdateHistory::Keep::All) {
    slices.watch(metrics.timeline());
  }
  RunObservers(const RunObservers&) = delete;
  RunObservers& operator=(const RunObservers&) = delete;
  void feed(const orchestrator::Record& record) {
    metrics.feed(record);
    groups.feed(record);
    note_turn(record);
    if (const auto* activity = std::get_if<orchestrator::event::Activity>(&record.event)) {
      for (const actors::Span& span : activity->spans)
        spans[span.state] += seconds(span.end - span.begin);
    }
  }
  void note_turn(const orchestrator::Record& record) {
    for (const orchestrator::Command& command : record.commands) {
      const auto* change = std::get_if<orchestrator::command::Switch>(&command);
      if (change != nullptr && change->action == actors::SwitchAction::OffloadOptimizer)
        turn_ends.insert(metrics.updates().size());
    }
  }
};

/// From the end of the first to that of the last whole turn of updates[first] to updates[last] if
/// all cards are time-shared and there is one; otherwise all of these updates.
std::pair<std::size_t, std::size_t> whole_turns(const RunObservers& observers,
                                                const orchestrator::PipelineConfig& config,
                                                std::size_t first,
                                                std::size_t last) {
  if (!traits_of(config.placement.mode).alternates())
    return {first, last};
  const auto& ends = observers.turn_ends;  // i + 1 if updates[i] was the last of a turn.
  const auto begin = ends.lower_bound(first + 1);
  const auto end = ends.upper_bound(last + 1);
  if (begin == ends.end() || end == ends.begin() || *std::prev(end) <= *begin)
    return {first, last};
  return {*begin - 1, *std::prev(end) - 1};
}

/// Mean length of begun responses, if known.
double begun_length(const DispatchedGroups& groups,
                    const orchestrator::ResolvedPipeline& pipeline) {
  const orchestrator::PipelineConfig& config = pipeline.config;
  if (pipeline.simulation)
    return groups.mean_length(pipeline.simulation->config.response, config);
  if (config.policy == actors::PolicyKind::Synthetic)
    return static_cast<double>(config.synthetic.tokens.count());
  return 0.0;
}

Figures figures_of(RunObservers& observers, const orchestrator::ResolvedPipeline& pipeline) {
  const orchestrator::PipelineConfig& config = pipeline.config;
  orchestrator::RunMetrics& metrics = observers.metrics;
  Figures figures;
  figures.spans = observers.spans;
  const orchestrator::Summary summary =
      orchestrator::summarize(metrics, orchestrator::identity_of(config, 0));
  figures.whole = whole_of(summary, metrics);
  figures.accounts = fates_of(summary);
  metrics.timeline().finish(metrics.wall());
  const auto bound = static_cast<std::size_t>(config.staleness.bound);
  const std::vector<orchestrator::Update>& updates = metrics.updates();
  // updates[i] completed version i + 1.
  if (updates.size() >= 2 * bound + 2) {
    const auto [first, last] = whole_turns(observers, config, bound, updates.size() - bound - 1);
    figures.steady = between(metrics, updates[first], updates[last], observers.slices, config.cost);
  } else {
    figures.steady = figures.whole;
  }
  for (const orchestrator::Update& update : updates)
    figures.rewards.push_back(
        {seconds(update.time.time_since_epoch()), update.metrics.reward_mean});
  if (const auto* best = metrics.best_evaluation()) {
    figures.held_out = metrics.evaluations().back().result.pass_1;
    figures.best_held_out = best->pass_1;
  }
  figures.accounts.begun_length = begun_length(observers.groups, pipeline);
  return figures;
}

struct FinishedCounter {
  Mutex mutex;
  std::size_t count TEMPER_GUARDED_BY(mutex) = 0;
};

}  // namespace

Status check_rules(const orchestrator::PipelineConfig& config) {
  const std::vector<orchestrator::BrokenRule> broken = orchestrator::validate(config);
  if (broken.empty())
    return {};
  std::string text;
  for (const orchestrator::BrokenRule& rule : broken)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", rule.keys.front(), rule.message);
  return invalid_input(std::move(text));
}

Result<Figures> simulate_on(orchestrator::VirtualOptions options,
                            std::unique_ptr<orchestrator::ActorHost> host) {
  const orchestrator::ResolvedPipeline pipeline = options.pipeline;
  RunObservers observers;
  orchestrator::RunObserver observer;
  observer.on_record = [&](const orchestrator::Record& record) { observers.feed(record); };
  TEMPER_TRY(const auto driver,
             orchestrator::VirtualDriver::create(
                 std::move(options), std::move(host), std::move(observer), Log::discard()));
  const orchestrator::RunOutcome outcome = driver->run();
  if (!outcome.finish.ok)
    return Error{ErrorCode::Internal, outcome.finish.reason};
  return figures_of(observers, pipeline);
}

namespace {

Result<Figures> run_simulation(orchestrator::ResolvedPipeline pipeline) {
  std::vector<std::string> names;
  for (const orchestrator::ActorSpec& spec : pipeline.slots)
    names.push_back(spec.name);
  orchestrator::VirtualOptions options;
  options.pipeline = std::move(pipeline);
  return simulate_on(std::move(options),
                     std::make_unique<orchestrator::InProcessHost>(
                         std::move(names), orchestrator::SimulatedActors()));
}

/// Scales figures of the simulated responses to all that they represent.
void scale(Rates& rates, double weight) {
  rates.trained_per_s *= weight;
  rates.generated_per_s *= weight;
  rates.sustained_per_s *= weight;
  if (rates.cost) {
    for (auto* const tokens : {&rates.cost->tokens_per_price, &rates.cost->tokens_per_kwh}) {
      if (*tokens)
        **tokens *= weight;
    }
  }
}

void scale(TokenAccounts& accounts, std::int64_t weight) {
  accounts.generated *= weight;
  accounts.wasted *= weight;
  const auto groups = static_cast<std::uint64_t>(weight);
  accounts.groups_trained *= groups;
  accounts.groups_evicted *= groups;
  for (auto& [age, count] : accounts.staleness)
    count *= groups;
}

}  // namespace

Result<Figures> simulate(const orchestrator::PipelineConfig& config) {
  TEMPER_CHECK(config.hardware == orchestrator::HardwareKind::Simulated,
               "the hardware is simulated");
  TEMPER_TRY_STATUS(check_rules(config));
  TEMPER_TRY(orchestrator::ResolvedPipeline pipeline, orchestrator::resolve(config));
  return run_simulation(std::move(pipeline));
}

std::int64_t largest_weight(const orchestrator::ResolvedPipeline& pipeline, std::int64_t wanted) {
  const orchestrator::PipelineConfig& config = pipeline.config;
  if (pipeline.simulation->config.tools)
    return 1;
  const std::int64_t cards = std::ssize(pipeline.placement.rollout);
  const auto replicas_on = [&](std::int64_t engine_cards) {
    return engine_cards *
           actors::hardware_of(*pipeline.simulation, actors::RoleKind::Rollout).dies_per_card /
           config.simulation.rollout.tp;
  };
  const std::int64_t prefill = config.simulation.rollout.prefill_cards;
  const std::int64_t replicas =
      std::gcd(replicas_on(cards / config.rollout.replicas - prefill), replicas_on(prefill));
  const std::int64_t groups = config.algorithm.groups_per_update;
  const std::int64_t slots = config.rollout.concurrency;
  for (std::int64_t weight = wanted; weight > 1; --weight) {
    if (groups % weight == 0 && slots % weight == 0 && replicas % weight == 0 &&
        slots / weight >= kLeastGroups * config.algorithm.responses_per_group) {
      return weight;
    }
  }
  return 1;
}

orchestrator::ResolvedPipeline sampled_pipeline(const orchestrator::ResolvedPipeline& pipeline,
                                                std::int64_t weight) {
  orchestrator::ResolvedPipeline part = pipeline;
  part.config.algorithm.groups_per_update /= static_cast<std::int32_t>(weight);
  part.config.rollout.concurrency /= static_cast<std::int32_t>(weight);
  for (orchestrator::ActorSpec& slot : part.slots)
    slot.concurrency /= static_cast<std::int32_t>(weight);
  actors::SimulatedRun& s = *part.simulation;
  s.response_weight = weight;
  s.config.reward.pool = std::max(1, s.config.reward.pool / static_cast<std::int32_t>(weight));
  if (s.config.tools && s.config.tools->pool > 0)
    s.config.tools->pool = std::max<std::int64_t>(1, s.config.tools->pool / weight);
  part.config.simulation = s.config;
  return part;
}

Result<Figures> simulate_sampled(const orchestrator::ResolvedPipeline& pipeline,
                                 std::int64_t weight) {
  TEMPER_TRY(Figures figures, run_simulation(sampled_pipeline(pipeline, weight)));
  scale(figures.whole, static_cast<double>(weight));
  scale(figures.steady, static_cast<double>(weight));
  scale(figures.accounts, weight);
  return figures;
}

Result<Figures> figures_of_log(const std::filesystem::path& log,
                               const orchestrator::ResolvedPipeline& pipeline) {
  RunObservers observers;
  const auto read = orchestrator::read_event_log(log, [&](const orchestrator::Record& record) {
    observers.feed(record);
    return Status();
  });
  if (!read)
    return read.error();
  const auto& finish = observers.metrics.finish();
  if (!finish)
    return Error{ErrorCode::Internal, "the run has not ended, or was interrupted"};
  if (!finish->ok)
    return Error{ErrorCode::Internal,
                 orchestrator::end_of(*finish, observers.metrics.config().actors).reason};
  return figures_of(observers, pipeline);
}

namespace {

Result<Figures> sampled(const orchestrator::PipelineConfig& config, std::int64_t wanted) {
  TEMPER_TRY_STATUS(check_rules(config));
  TEMPER_TRY(const orchestrator::ResolvedPipeline pipeline, orchestrator::resolve(config));
  return simulate_sampled(pipeline, largest_weight(pipeline, wanted));
}

}  // namespace

std::vector<Result<Figures>> simulate_all(std::span<const orchestrator::PipelineConfig> configs,
                                          const SimulateOptions& options) {
  return simulate_all(configs, options, [&](const orchestrator::PipelineConfig& config) {
    return options.response_weight > 1 ? sampled(config, options.response_weight)
                                       : simulate(config);
  });
}

std::vector<Result<Figures>> simulate_all(std::span<const orchestrator::PipelineConfig> configs,
                                          const SimulateOptions& options,
                                          const SimulateOne& one) {
  std::vector<std::optional<Result<Figures>>> results(configs.size());
  FinishedCounter finished;
  for_each_index(configs.size(), options.threads, [&](std::size_t i) {
    {
      const MutexLock lock(finished.mutex);
      if (options.stop && options.stop()) {
        results[i] = Error{ErrorCode::Unavailable, "stopped on request"};
        return;
      }
    }
    results[i] = one(configs[i]);
    const MutexLock lock(finished.mutex);
    ++finished.count;
    if (options.on_progress)
      options.on_progress(finished.count, configs.size());
  });
  std::vector<Result<Figures>> out;
  out.reserve(results.size());
  for (auto& result : results)
    out.push_back(*std::move(result));
  return out;
}

}  // namespace temper::study
