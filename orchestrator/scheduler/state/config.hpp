// All that the scheduler knows of a run before it starts. Recorded as the first event of a run, so
// that a replay needs the log alone.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "core/describe.hpp"
#include "orchestrator/scheduler/staleness/rule_kind.hpp"

#include <algorithm>

namespace temper {
namespace orchestrator {

/// When cards of the trainer are lent to the rollout (hybrid placement): when it pays
/// (scheduler/sharing/lending.hpp), or whenever the trainer waits.
enum class LendingRule { Auto, Always };

/// When a group is dispatched that the rule admits: at once, or not before the trainer needs it
/// (scheduler/dispatch/just_in_time.hpp).
enum class Admission { Eager, JustInTime };

/// Whether cards that roles share change role all together, or engine by engine
/// (scheduler/sharing/card_shares.hpp).
enum class Switching { Together, OneByOne };

/// From which version the age of a group is counted: that of its first token's dispatch, or the
/// mean version of its tokens, rounded down, once all are there (until then the first).
enum class AgeRule { FirstToken, TokenWeighted };

/// One actor slot. Its id is its place in SchedulerConfig::actors, and stays its own for as long as
/// the run lasts: who is taken away keeps it, who comes later is put behind the others.
struct ActorSpec {
  std::string name;
  actors::RoleKind role = actors::RoleKind::Rollout;
  std::vector<CardId> cards;
  std::int32_t concurrency = 0;  ///< rollout: responses in flight.
  bool takes_turns = false;      ///< rollout, reference: on the trainer's cards, in turn with it.
  bool attached = false;         ///< Its worker is started by others, and waited for.
  bool away = false;             ///< It was taken away, and has no work; its cards are what it had.
};

/// Means by which the groups that an update waits for end sooner. None moves a group's deadline or
/// gives anything up, so each may be on or off under any policy.
struct StragglerConfig {
  bool even_load = true;
  bool migrate = true;
  bool deadline_first = true;
  bool keep_kv = true;
  bool predict_length = false;
  bool dispatch_ahead = true;
  bool prepare = false;
};

struct Deadlines {
  Duration start = std::chrono::seconds(30);
  Duration attach = std::chrono::minutes(10);
  Duration generate = std::chrono::seconds(120);
  Duration reference = std::chrono::seconds(60);
  Duration reward = std::chrono::seconds(60);
  Duration train = std::chrono::seconds(300);
  Duration weights = std::chrono::seconds(60);
  Duration switching = std::chrono::seconds(60);
  Duration checkpoint = std::chrono::seconds(60);
  Duration drain = std::chrono::seconds(30);
};

/// When the policy is evaluated, and on what (docs/explanation/measures.md, section 7).
struct EvaluationPlan {
  std::uint64_t every = 0;    ///< Updates; 0: never.
  std::int32_t problems = 0;  ///< The first so many of those that are kept for it.
  std::int32_t samples = 1;   ///< Responses to each.
  double pass = 1;            ///< A response with this reward or more passes.
  bool checkpoint = true;     ///< Save one of each version that is evaluated.
};

struct SchedulerConfig {
  std::vector<ActorSpec> actors;
  std::uint64_t steps = 1;             ///< Policy updates to make.
  std::int32_t groups_per_update = 1;  ///< B
  std::int32_t responses_per_group = 1;
  std::uint64_t staleness_bound = 0;  ///< eta, its whole part
  double staleness_fraction = 0;      ///< and the rest, for policies that allow one.
  StalenessRuleKind staleness_rule = StalenessRuleKind::Exact;
  std::uint64_t checkpoint_every = 0;  ///< Steps; 0: only at the end.
  std::int32_t score_batch = 256;      ///< Responses per reference or reward lease.
  std::int32_t judge_batch = 256;      ///< Responses per reward lease, if fewer.
  std::int32_t max_restarts = 3;       ///< Per actor slot, in a row.
  /// An actor that was up for so long, or at a checkpoint, has its restarts forgiven.
  Duration restarts_forgiven_after = std::chrono::minutes(10);
  std::int32_t starts_at_once = 0;  ///< Most actors that start at the same time; 0: any number.
  /// Groups that may fail between two updates; one more ends the run. 0: any number.
  std::uint64_t failed_groups_limit = 0;
  Deadlines deadlines;
  LendingRule lending = LendingRule::Auto;
  /// Cards whose roles take turns go back to training when a batch is ready, nothing new may be
  /// dispatched, and at most this share of their engines' slots still generates.
  double return_share = 0.25;
  StragglerConfig stragglers;
  AgeRule age = AgeRule::FirstToken;
  Admission admission = Admission::Eager;
  Switching switching = Switching::Together;
  /// OneByOne: of how many engines the trainer may have the cards, ascending.
  std::vector<std::int32_t> shares;
  /// OneByOne: engines give up their cards as long as the others have at most this share of their
  /// slots in use.
  double crowding = 0.25;
  /// A judged group whose rewards are all equal is filtered: at most this many batches of them
  /// between two updates.
  bool filter_equal_rewards = false;
  double filter_limit = 0;
  EvaluationPlan evaluation;

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
    return !shared ? "separate" : fixed ? "hybrid" : scored ? "fused" : "colocated";
  }
};

template <class V>
void describe(V& v, ActorSpec& c) {
  v.field(1, "name", c.name, {.doc = "Slot name, e.g. `rollout-0`."});
  v.field(2, "role", c.role, {.doc = "Role."});
  v.field(3, "cards", c.cards, {.doc = "Cards it runs on."});
  v.field(4, "concurrency", c.concurrency, {.doc = "rollout: responses in flight."});
  v.field(5, "takes_turns", c.takes_turns, {.doc = "On the trainer's cards, in turn with it."});
  v.field(6, "attached", c.attached, {.doc = "Its worker is started by others."});
  v.field(7, "away", c.away, {.doc = "It was taken away, and has no work."});
}

template <class V>
void describe(V& v, StragglerConfig& c) {
  v.field(1,
          "even_load",
          c.even_load,
          {.doc = "No engine takes more than an even share of the responses in flight, even if it "
                  "has new weights before the others."});
  v.field(2,
          "migrate",
          c.migrate,
          {.doc = "Responses that the next update needs move from the fullest engine to the "
                  "emptiest."});
  v.field(3,
          "deadline_first",
          c.deadline_first,
          {.doc = "Engines let in the oldest group first and put off the youngest; while the "
                  "trainer waits, the reference scores in small batches."});
  v.field(4,
          "keep_kv",
          c.keep_kv,
          {.doc = "What is cached of an interrupted response is kept or moved, where that is "
                  "sooner than computing it again."});
  v.field(5,
          "predict_length",
          c.predict_length,
          {.doc = "Lengths are predicted from finished siblings: the longest move first."});
  v.field(6,
          "dispatch_ahead",
          c.dispatch_ahead,
          {.doc = "Dispatch all that the policy admits; else no more than a batch per version."});
  v.field(7,
          "prepare",
          c.prepare,
          {.doc = "While the trainer waits for the rest of a batch, it computes the gradients of "
                  "the groups that are there; the update is the same. One minibatch, `exact` or "
                  "`sync`, advantages of groups."});
}

template <class V>
void describe(V& v, Deadlines& c) {
  constexpr Duration kMin = std::chrono::milliseconds(10);
  v.field(
      1,
      "start",
      c.start,
      {.doc = "Launch of an actor until it is ready. Counts anew while the worker shows that it "
              "loads: it uses the processor, reads from a disk or waits for its server; 20 "
              "times as long in all.",
       .min = kMin});
  v.field(10,
          "attach",
          c.attach,
          {.doc = "`launch: attach`: until a worker has come and is ready, while no other of its "
                  "role is.",
           .min = kMin});
  v.field(
      2, "generate", c.generate, {.doc = "A dispatched group without any result.", .min = kMin});
  v.field(3, "reference", c.reference, {.doc = "One batch of reference scores.", .min = kMin});
  v.field(4,
          "reward",
          c.reward,
          {.doc = "One batch of rewards. Of a verifier with a deadline of its own, four times "
                  "that at least.",
           .min = kMin});
  v.field(5, "train", c.train, {.doc = "One policy update.", .min = kMin});
  v.field(6, "weights", c.weights, {.doc = "Staging or committing weights.", .min = kMin});
  v.field(7, "switching", c.switching, {.doc = "One action of a role switch.", .min = kMin});
  v.field(8, "checkpoint", c.checkpoint, {.doc = "Saving a checkpoint.", .min = kMin});
  v.field(9, "drain", c.drain, {.doc = "From a stop request to the end.", .min = kMin});
}

template <class V>
void describe(V& v, EvaluationPlan& c) {
  v.field(1, "every", c.every);
  v.field(2, "problems", c.problems);
  v.field(3, "samples", c.samples);
  v.field(4, "pass", c.pass);
  v.field(5, "checkpoint", c.checkpoint);
}

template <class V>
void describe(V& v, SchedulerConfig& c) {
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
}

}  // namespace orchestrator

template <>
struct EnumNames<orchestrator::AgeRule> {
  using A = orchestrator::AgeRule;
  static constexpr std::array<std::pair<A, std::string_view>, 2> value{
      {{A::FirstToken, "first_token"}, {A::TokenWeighted, "token_weighted"}}};
};
template <>
struct EnumNames<orchestrator::Admission> {
  using A = orchestrator::Admission;
  static constexpr std::array<std::pair<A, std::string_view>, 2> value{
      {{A::Eager, "eager"}, {A::JustInTime, "just_in_time"}}};
};
template <>
struct EnumNames<orchestrator::Switching> {
  using S = orchestrator::Switching;
  static constexpr std::array<std::pair<S, std::string_view>, 2> value{
      {{S::Together, "together"}, {S::OneByOne, "one_by_one"}}};
};
template <>
struct EnumNames<orchestrator::LendingRule> {
  using L = orchestrator::LendingRule;
  static constexpr std::array<std::pair<L, std::string_view>, 2> value{
      {{L::Auto, "auto"}, {L::Always, "always"}}};
};

}  // namespace temper
