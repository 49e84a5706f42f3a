// Simulates a configuration on simulated hardware: one run in this process in virtual time, without
// a run folder, and its figures.
//
// Two sets of figures. `whole` covers the run from start to finish, as its summary does. `steady`
// covers the updates in the middle, because the ends dominate a short run. Before update w = bound
// + 1 is complete the queue is still filling (the first (bound + 1) B groups start together); once
// update n - bound is complete nothing is left to dispatch and engines drain. So
//   steady = from the completion of update bound + 1 to that of update n - bound
// if that is at least one update, that is n >= 2 bound + 2; otherwise steady = whole. If all cards
// are time-shared, it is cut to whole turns if it contains one, of at most bound + 1 updates. Rates
// are counts between the two instants over the time between them; so are card states.
//
// An interval can train groups generated before it, or generate groups trained after it; with a
// large bound such a debt takes many updates to settle. The rate that can continue forever is
//   sustained = min(trained tokens/s, generated tokens/s x trained tokens / their response tokens)
// (the last two over the whole run: prompts are trained, not generated). For a whole run it is the
// trained tokens/s.
//
// A sampled run of weight w simulates one prompt in w, and each response counts as w responses. An
// update has 1 / w of its groups; an engine has 1 / w of its slots, replicas and cache; reward
// actors have 1 / w of their workers. An engine keeps room for 8 groups, which bounds w. Every time
// is that of the full run; figures are scaled to it. A sampled run draws fewer lengths, so it has
// fewer very long responses and slightly short tails; the documentation of `temper tune` states its
// error. Responses with tools have no sample: a step with the result of one call takes hardly less
// time than one with several, and a sample would have 1 / w of these steps.
//
// Equal configurations give equal figures, on any thread and with any other runs in parallel.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "core/result.hpp"
#include "orchestrator/metrics/cost.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/run/virtual/virtual_driver.hpp"
#include "study/simulate/learning.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace temper::study {

/// Rates over an interval of a run. Tokens/s as in metrics/run_metrics.hpp.
struct Rates {
  std::uint64_t updates = 0;
  double seconds = 0;
  double seconds_per_update = 0;
  double trained_per_s = 0;
  double generated_per_s = 0;
  double sustained_per_s = 0;
  double busy = 0;                             ///< Share of card time.
  std::map<actors::CardState, double> states;  ///< Shares of card time; they add up to 1.
  double staleness_mean = 0;                   ///< Over trained groups.
  std::int64_t staleness_max = 0;
  std::optional<orchestrator::CostSummary> cost;  ///< Empty unless configured.
};

/// Fate of sampled tokens over the whole run.
struct TokenAccounts {
  std::int64_t generated = 0, wasted = 0;  ///< Tokens (metrics/run_metrics.hpp).
  double wasted_share = 0;
  double trained_length = 0;    ///< Tokens, mean over trained responses.
  double generated_length = 0;  ///< Mean over all finished responses, trained or not.
  /// Mean over all begun responses, each at the length that it would have reached; 0: unknown, as
  /// for aborted responses of a real policy.
  double begun_length = 0;
  std::uint64_t groups_trained = 0, groups_evicted = 0;
  std::map<std::int64_t, std::uint64_t> staleness;  ///< Trained groups by T - v0.
};

struct Figures {
  /// Busy seconds by activity, as actors reported them, summed over all actors.
  std::map<actors::CardState, double> spans;
  Rates whole;
  Rates steady;
  TokenAccounts accounts;
  std::vector<RewardPoint> rewards;  ///< One per update; meaningful only if a policy is trained.
  /// pass@1 of the last evaluation, and of the best one; empty if there was none.
  std::optional<double> held_out, best_held_out;
};

/// Updates that a run needs for `measured` steady ones.
constexpr std::uint64_t steps_for(std::uint64_t measured, std::int32_t bound) {
  return measured + 2 * static_cast<std::uint64_t>(bound) + 1;
}

/// Error InvalidInput: an invalid configuration; its context lists every violation.
Status check_rules(const orchestrator::PipelineConfig& config);

/// Requires: config.hardware is Simulated. Errors: an invalid configuration (InvalidInput, with
/// every violation), or the run did not finish (Internal, with its reason).
Result<Figures> simulate(const orchestrator::PipelineConfig& config);

/// The same for a run whose actors are in `host`. Error: the run did not finish (Internal, with its
/// reason).
Result<Figures> simulate_on(orchestrator::VirtualOptions options,
                            std::unique_ptr<orchestrator::ActorHost> host);

/// The largest weight up to `wanted` that divides the groups of an update and the slots and
/// replicas of every engine, and leaves an engine room for 8 groups; with tools 1.
std::int64_t largest_weight(const orchestrator::ResolvedPipeline& pipeline, std::int64_t wanted);

/// The pipeline of a sampled run. Requires: `weight` is a result of largest_weight().
orchestrator::ResolvedPipeline sampled_pipeline(const orchestrator::ResolvedPipeline& pipeline,
                                                std::int64_t weight);

/// simulate() of a sampled run, without validation. Requires: `weight` is a result of
/// largest_weight().
Result<Figures> simulate_sampled(const orchestrator::ResolvedPipeline& pipeline,
                                 std::int64_t weight);

/// The same figures for a finished run of `pipeline`, from its events.log, on any hardware. Errors:
/// the log cannot be read; the run did not complete all its updates (Internal, with its reason).
Result<Figures> figures_of_log(const std::filesystem::path& log,
                               const orchestrator::ResolvedPipeline& pipeline);

struct SimulateOptions {
  int threads = 1;
  std::int64_t response_weight = 1;  ///< Above 1: sampled runs of at most this weight.
  /// Called after each run, by one thread at a time.
  std::function<void(std::size_t done, std::size_t of)> on_progress;
  /// Called before each run, by one thread at a time. True: it does not begin, and its result is
  /// the error Unavailable.
  std::function<bool()> stop{};
};

/// One result per configuration, in their order, independent of the number of threads.
std::vector<Result<Figures>> simulate_all(std::span<const orchestrator::PipelineConfig> configs,
                                          const SimulateOptions& options);
/// The same with another function that simulates a run; it is called on several threads at once.
using SimulateOne = std::function<Result<Figures>(const orchestrator::PipelineConfig&)>;
std::vector<Result<Figures>> simulate_all(std::span<const orchestrator::PipelineConfig> configs,
                                          const SimulateOptions& options,
                                          const SimulateOne& one);

void describe(auto& v, Rates& r) {
  v.field(1, "updates", r.updates);
  v.field(2, "seconds", r.seconds);
  v.field(3, "seconds_per_update", r.seconds_per_update);
  v.field(4, "trained_per_s", r.trained_per_s);
  v.field(5, "generated_per_s", r.generated_per_s);
  v.field(6, "busy", r.busy);
  v.field(7, "states", r.states);
  v.field(8, "staleness_mean", r.staleness_mean);
  v.field(9, "staleness_max", r.staleness_max);
  v.field(10, "sustained_per_s", r.sustained_per_s);
}
void describe(auto& v, TokenAccounts& f) {
  v.field(1, "generated", f.generated);
  v.field(2, "wasted", f.wasted);
  v.field(3, "wasted_share", f.wasted_share);
  v.field(4, "trained_length", f.trained_length);
  v.field(5, "generated_length", f.generated_length);
  v.field(6, "groups_trained", f.groups_trained);
  v.field(7, "groups_evicted", f.groups_evicted);
  v.field(8, "staleness", f.staleness);
  v.field(9, "begun_length", f.begun_length);
}
void describe(auto& v, Figures& f) {
  v.field(1, "whole", f.whole);
  v.field(2, "steady", f.steady);
  v.field(3, "fates", f.accounts);
}

}  // namespace temper::study
