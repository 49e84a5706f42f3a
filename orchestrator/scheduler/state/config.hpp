// Everything that the scheduler knows about a run before it starts. Recorded as the first event of
// a run, so a replay needs only the log.
#pragma once

#include "actors/protocol/placement_mode.hpp"
#include "orchestrator/scheduler/problems/problem_plan.hpp"
#include "orchestrator/scheduler/state/actor_spec.hpp"
#include "orchestrator/scheduler/state/settings.hpp"

#include <algorithm>

namespace temper::orchestrator {

struct SchedulerConfig {
  std::vector<ActorSpec> actors;
  std::uint64_t steps = 1;             ///< Steps of the run.
  std::int32_t groups_per_update = 1;  ///< B
  std::int32_t responses_per_group = 1;
  std::uint64_t staleness_bound = 0;  ///< eta, its whole part
  double staleness_fraction = 0;      ///< and the rest, for rules that allow one.
  StalenessRuleKind staleness_rule = StalenessRuleKind::Exact;
  std::uint64_t checkpoint_every = 0;  ///< Steps; 0: only at the end.
  std::int32_t score_batch = 256;      ///< Responses per reference or reward lease.
  std::int32_t judge_batch = 256;      ///< Responses per reward lease, if fewer.
  std::int32_t max_restarts = 3;       ///< Per actor slot, in a row.
  /// The restarts of an actor that was ready for this long, or at a checkpoint, are forgotten.
  Duration restarts_forgiven_after = std::chrono::minutes(10);
  std::int32_t starts_at_once = 0;  ///< Most actors that start at the same time; 0: any number.
  /// Groups that may fail between two steps; one more ends the run. 0: any number.
  std::uint64_t failed_groups_limit = 0;
  Deadlines deadlines;
  LendingRule lending = LendingRule::Auto;
  /// Time-shared cards return to training when a batch is ready, nothing new may be dispatched, and
  /// at most this share of their engines' slots is in use.
  double return_share = 0.25;
  StragglerConfig stragglers;
  AgeRule age = AgeRule::FirstToken;
  Admission admission = Admission::Eager;
  Switching switching = Switching::Together;
  /// OneByOne: the numbers of engines whose cards the trainer may get, ascending.
  std::vector<std::int32_t> shares;
  /// OneByOne: for each share, the groups that are worth training on it before their batch is
  /// complete; empty: any.
  std::vector<std::int32_t> parts;
  /// OneByOne: responses that fill the KV cache of an engine; 0: as many as it has slots.
  std::int64_t kv_slots = 0;
  /// OneByOne: engines give up their cards as long as the others have at most this share of their
  /// slots in use.
  double crowding = 0.2;
  /// Filter judged groups whose rewards are all equal: at most `filter_limit` batches of them
  /// between two steps.
  bool filter_equal_rewards = false;
  double filter_limit = 0;
  EvaluationPlan evaluation;
  ProblemPlan problems;
  /// All tokens of a response are of the version that began it.
  bool one_version = false;

  bool has_reference() const {
    return std::ranges::any_of(actors, [](const ActorSpec& actor) {
      return actor.role == actors::RoleKind::Reference && !actor.away;
    });
  }
  /// How roles share cards, in the words of `placement.mode`.
  std::string_view placement() const {
    bool shared = false, fixed = false, scored = false;
    for (const ActorSpec& actor : actors) {
      if (actor.away)
        continue;
      if (actor.role == actors::RoleKind::Rollout)
        (actor.takes_turns ? shared : fixed) = true;
      scored |= actor.role == actors::RoleKind::Reference && actor.takes_turns;
    }
    return actors::placement_name(fixed, shared, scored);
  }
};

void describe(auto& v, SchedulerConfig& c) {
  v.field(1, "actors", c.actors);
  v.field(2, "steps", c.steps);
  v.field(3, "groups_per_update", c.groups_per_update);
  v.field(4, "responses_per_group", c.responses_per_group);
  v.field(5, "staleness_bound", c.staleness_bound);
  v.field(7, "checkpoint_every", c.checkpoint_every);
  v.field(8, "score_batch", c.score_batch);
  v.field(9, "max_restarts", c.max_restarts);
  v.field(10, "deadlines", c.deadlines);
  v.field(11, "lending", c.lending);
  v.field(12, "return_share", c.return_share);
  v.field(13, "staleness_rule", c.staleness_rule);
  v.field(14, "staleness_fraction", c.staleness_fraction);
  v.field(15, "stragglers", c.stragglers);
  v.field(16, "age", c.age);
  v.field(20, "filter_equal_rewards", c.filter_equal_rewards);
  v.field(21, "filter_limit", c.filter_limit);
  v.field(22, "restarts_forgiven_after", c.restarts_forgiven_after);
  v.field(23, "starts_at_once", c.starts_at_once);
  v.field(24, "failed_groups_limit", c.failed_groups_limit);
  v.field(25, "admission", c.admission);
  v.field(26, "switching", c.switching);
  v.field(27, "shares", c.shares);
  v.field(28, "crowding", c.crowding);
  v.field(29, "evaluation", c.evaluation);
  v.field(30, "judge_batch", c.judge_batch);
  v.field(31, "parts", c.parts);
  v.field(32, "kv_slots", c.kv_slots);
  v.field(33, "problems", c.problems);
  v.field(34, "one_version", c.one_version);
}

}  // namespace temper::orchestrator
