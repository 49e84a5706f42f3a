#include "orchestrator/pipeline/resolve.hpp"

#include "actors/simulation/lengths.hpp"
#include "orchestrator/pipeline/card_shares.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "orchestrator/pipeline/teachers.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "trainer/algorithm_table.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace temper::orchestrator {

ResolvedPipeline resolve_cards(PipelineConfig config) {
  ResolvedPipeline out;
  out.placement = resolve_placement(config);
  out.slots = actor_slots(config, out.placement);
  out.config = std::move(config);
  return out;
}

Result<ResolvedPipeline> resolve(PipelineConfig config) {
  ResolvedPipeline out = resolve_cards(std::move(config));
  if (out.config.hardware == HardwareKind::Simulated) {
    TEMPER_TRY(out.simulation, resolve_simulation(out.config, out.placement));
    out.shares = card_shares(out);
    out.host_left = room_for_caches(out);
    out.problems = plan_without_prompts(out.config);
    const actors::SimulationConfig& c = out.simulation->config;
    if (!out.shares.empty() && actors::check_lengths(c.prompt) &&
        actors::check_lengths(c.response)) {
      out.parts = share_parts(out, out.shares);
      out.kv_slots = kv_slots(out);
    }
  }
  return out;
}

namespace {

/// Smaller numbers of consecutive failures are not significant, however small the batch.
constexpr double kLeastFailedGroups = 16;

std::uint64_t failed_groups_limit(const trainer::AlgorithmConfig& config) {
  return static_cast<std::uint64_t>(
      std::max(kLeastFailedGroups, std::ceil(config.failure_limit * config.groups_per_update)));
}

/// Leases that a verifier has at the same time: one running, one queued, one for an evaluation.
constexpr std::int32_t kRewardLeases = 3;

/// Even a verifier that never replies answers every lease within `deadlines.reward`, so that its
/// failures are counted and the actor is not declared hung.
void fit_rewards(const PipelineConfig& config, SchedulerConfig& out) {
  if (config.hardware != HardwareKind::Local ||
      config.reward.engine.kind != actors::EngineKind::Native)
    return;
  Duration deadline{};  // Of all terms of a response, one after another.
  std::optional<std::int64_t> pool;
  for (const auto& [name, term] : actors::terms_of(config.verifier)) {
    const actors::VerifierTraits& traits = traits_of(term.kind);
    if (traits.has_deadline)
      deadline += term.deadline;
    if (traits.one_at_a_time)
      pool = std::min<std::int64_t>(pool.value_or(term.pool), term.pool);
  }
  out.deadlines.reward = std::max(out.deadlines.reward, (kRewardLeases + 1) * deadline);
  if (pool) {
    const auto rounds = (out.deadlines.reward - deadline) / (kRewardLeases * deadline);
    out.judge_batch =
        static_cast<std::int32_t>(std::min<std::int64_t>(out.score_batch, rounds * *pool));
  }
}

/// Restarts in a row of an actor whose hardware fails on purpose: it may never reach a checkpoint.
constexpr std::int32_t kPlannedRestarts = 1000;

}  // namespace

SchedulerConfig scheduler_config(const ResolvedPipeline& pipeline) {
  const PipelineConfig& config = pipeline.config;
  SchedulerConfig out;
  if (pipeline.simulation)  // As many as without thinning.
    out.score_batch = std::max(
        1, out.score_batch / static_cast<std::int32_t>(pipeline.simulation->response_weight));
  out.actors = pipeline.slots;
  out.steps = config.steps;
  out.groups_per_update = config.algorithm.groups_per_update;
  out.responses_per_group = config.algorithm.responses_per_group;
  out.staleness_rule = config.staleness.rule;
  out.staleness_bound = static_cast<std::uint64_t>(config.staleness.bound);
  out.staleness_fraction = config.staleness.bound - std::floor(config.staleness.bound);
  out.one_version = config.rollout.on_new_weights == rollout::OnNewWeights::Finish;
  out.lending = config.placement.lending;
  out.return_share = config.placement.return_share;
  out.switching = config.placement.switching;
  out.shares = pipeline.shares;
  out.parts = pipeline.parts;
  out.kv_slots = pipeline.kv_slots;
  out.crowding = config.placement.crowding;
  out.admission = config.staleness.admission;
  out.stragglers = config.stragglers;
  out.age = config.staleness.age;
  out.checkpoint_every = static_cast<std::uint64_t>(config.checkpoint.every);
  out.max_restarts = config.transport.max_restarts;
  out.restarts_forgiven_after = config.transport.restarts_forgiven_after;
  if (config.hardware == HardwareKind::Local)  // A simulated start costs this machine nothing.
    out.starts_at_once = config.transport.starts_at_once;
  out.deadlines = config.deadlines;
  fit_rewards(config, out);
  if (const actors::FaultConfig& faults = config.simulation.faults; fails_by_plan(config)) {
    // Injected faults must neither fail the run nor cut its waits short, as long as it still
    // reaches a checkpoint now and then.
    out.max_restarts = kPlannedRestarts;
    out.deadlines.start += faults.repair + faults.link_repair + faults.replacement;
  }
  out.filter_equal_rewards =
      trainer::resolve(config.algorithm, config.sampling.max_new_tokens).filter_equal_rewards;
  out.filter_limit = config.algorithm.filter_limit;
  out.failed_groups_limit = failed_groups_limit(config.algorithm);
  const EvaluationSection& e = config.evaluation;
  if (e.every > 0)
    out.evaluation = {e.every, e.problems, e.samples, e.pass, e.keep_best};
  out.problems = pipeline.problems;
  return out;
}

ScoringPasses scoring_passes(const PipelineConfig& config,
                             const PlacementConfig& placement,
                             std::int64_t batch) {
  const double share = static_cast<double>(batch) * busiest_share(config);
  ScoringPasses out;
  // A third of 6 is 2, whatever its last bit.
  out.responses = std::max<std::int64_t>(1, static_cast<std::int64_t>(share + 1e-9));
  if (!traits_of(placement.mode).shares_reference)
    out.responses = std::min<std::int64_t>(out.responses, SchedulerConfig().score_batch);
  out.count = std::max(1.0, share / static_cast<double>(out.responses));
  return out;
}

}  // namespace temper::orchestrator
