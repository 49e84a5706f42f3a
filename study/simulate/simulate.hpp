// What a configuration on simulated hardware would do: one run in this process and in virtual time,
// without a run folder, and the figures of it.
//
// Two sets of figures. `whole`: of the run from start to finish, those of its summary. `steady`:
// of the updates in the middle, since a short run weighs its ends too much. Before update
// w = bound + 1 is complete the queue still fills (the first (bound + 1) B groups begin together);
// once update n - bound is complete there is nothing left to dispatch and engines drain. So
//   steady = from the completion of update bound + 1 to that of update n - bound
// where that is an update or more, that is n >= 2 bound + 2; else steady = whole. Where all cards
// take turns it is cut to whole turns if it holds one, of bound + 1 updates at most. Rates are what
// was counted between the two instants over the time between them; card states likewise.
//
// A stretch can train what was generated before it, or generate what is trained after it; with a
// large bound such a debt takes many updates to settle. What can go on for ever is
//   sustained = min(trained tokens/s, generated tokens/s x trained tokens / their response tokens)
// (the last two of the whole run: prompts are trained, not generated). For a run as a whole it is
// the trained tokens/s.
//
// A thinned run of weight w simulates one prompt in w, and each response counts for w responses: an
// update has 1 / w of its groups, an engine has 1 / w of its slots, of its replicas and of their
// cache, and reward actors have 1 / w of their workers; an engine keeps room for 8 groups, which
// bounds w. Every time is that of the whole run; figures are scaled to it. A thinned run draws
// fewer lengths, so it meets fewer very long responses and its tails are a little too short;
// docs/tune.md says how far its figures are from those of whole runs.
//
// Equal configurations give equal figures, on any thread, in any company.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "core/result.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/run/virtual/virtual_driver.hpp"
#include "study/simulate/learning.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace temper::study {

/// Over some stretch of a run. Tokens/s as in metrics/run_metrics.hpp.
struct Rates {
  std::uint64_t updates = 0;
  double seconds = 0;
  double seconds_per_update = 0;
  double trained_per_s = 0;
  double generated_per_s = 0;
  double sustained_per_s = 0;
  double busy = 0;                             ///< Share of card time.
  std::map<actors::CardState, double> states;  ///< Likewise; they sum to 1.
  double staleness_mean = 0;                   ///< Of trained groups.
  std::int64_t staleness_max = 0;
};

/// What became of what was sampled, over the whole run.
struct TokenAccounts {
  std::int64_t generated = 0, wasted = 0;  ///< Tokens (metrics/run_metrics.hpp).
  double wasted_share = 0;
  double trained_length = 0;    ///< Mean of the trained responses, tokens.
  double generated_length = 0;  ///< Mean of all that were generated to the end, trained or not.
  /// Mean of all that were begun, each as long as it would have become; 0: nobody knows, as of a
  /// real policy's responses that were aborted.
  double begun_length = 0;
  std::uint64_t groups_trained = 0, groups_evicted = 0;
  std::map<std::int64_t, std::uint64_t> staleness;  ///< Trained groups by T - v0.
};

struct Figures {
  /// What actors were busy with, added up over all of them: seconds of each, as they reported it.
  std::map<actors::CardState, double> spans;
  Rates whole;
  Rates steady;
  TokenAccounts accounts;
  std::vector<RewardPoint> rewards;  ///< One per update; no sense but where a policy learns.
};

/// How many updates a run needs for `measured` steady ones.
constexpr std::uint64_t steps_for(std::uint64_t measured, std::int32_t bound) {
  return measured + 2 * static_cast<std::uint64_t>(bound) + 1;
}

/// Error InvalidInput: the configuration breaks a rule; every rule in its context.
Status check_rules(const orchestrator::PipelineConfig& config);

/// Requires: config.hardware is Simulated. Errors: the configuration breaks a rule (InvalidInput,
/// every rule in its context), or the run did not finish (Internal, with its reason).
Result<Figures> simulate(const orchestrator::PipelineConfig& config);

/// The same of a run whose actors live in `host`. Error: the run did not finish (Internal, with its
/// reason).
Result<Figures> simulate_on(orchestrator::VirtualOptions options,
                            std::unique_ptr<orchestrator::ActorHost> host);

/// The largest weight up to `wanted` that divides the groups of an update and every engine's slots
/// and replicas, and leaves an engine the slots of a group.
std::int64_t largest_weight(const orchestrator::ResolvedPipeline& pipeline, std::int64_t wanted);

/// The pipeline of a thinned run. Requires: `weight` is an answer of largest_weight().
orchestrator::ResolvedPipeline thinned_pipeline(const orchestrator::ResolvedPipeline& pipeline,
                                                std::int64_t weight);

/// simulate() of a thinned run, whose rules are not checked again. Requires: `weight` is an answer
/// of largest_weight().
Result<Figures> simulate_thinned(const orchestrator::ResolvedPipeline& pipeline,
                                 std::int64_t weight);

/// The same figures of a run of `pipeline` that left its events.log in a folder, on any hardware.
/// Errors: the log cannot be read; the run did not make all its updates (Internal, with its
/// reason).
Result<Figures> figures_of_log(const std::filesystem::path& log,
                               const orchestrator::ResolvedPipeline& pipeline);

struct SimulateOptions {
  int threads = 1;
  std::int64_t response_weight = 1;  ///< Above 1: thinned runs of this weight at most.
  /// Called after each run, by one thread at a time.
  std::function<void(std::size_t done, std::size_t of)> on_progress;
};

/// One result per configuration, in their order, whatever the number of threads.
std::vector<Result<Figures>> simulate_all(std::span<const orchestrator::PipelineConfig> configs,
                                          const SimulateOptions& options);
/// The same with another way to make a run, which is called on several threads at once.
using SimulateOne = std::function<Result<Figures>(const orchestrator::PipelineConfig&)>;
std::vector<Result<Figures>> simulate_all(std::span<const orchestrator::PipelineConfig> configs,
                                          const SimulateOptions& options,
                                          const SimulateOne& one);

template <class V>
void describe(V& v, Rates& r) {
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
template <class V>
void describe(V& v, TokenAccounts& f) {
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
template <class V>
void describe(V& v, Figures& f) {
  v.field(1, "whole", f.whole);
  v.field(2, "steady", f.steady);
  v.field(3, "fates", f.accounts);
}

}  // namespace temper::study
