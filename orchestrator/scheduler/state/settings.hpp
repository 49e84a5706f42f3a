// Settings of the scheduler that a configuration file names: rules, deadlines, and measures against
// stragglers. config.hpp has everything that a run starts with.
#pragma once

#include "core/describe.hpp"
#include "core/units.hpp"
#include "orchestrator/scheduler/staleness/rule_kind.hpp"

#include <cstdint>

namespace temper {
namespace orchestrator {

/// When the trainer lends its cards to the rollout (hybrid placement): when a loan pays
/// (scheduler/sharing/loan_estimate.hpp), or whenever the trainer waits.
enum class LendingRule { Auto, Always };

/// When an admitted group is dispatched: at once, or not before the trainer needs it
/// (scheduler/dispatch/just_in_time.hpp).
enum class Admission { Eager, JustInTime };

/// How time-shared cards change role: all together, or engine by engine
/// (scheduler/sharing/card_shares.hpp).
enum class Switching { Together, OneByOne };

/// The version from which the age of a group is counted: the one it was dispatched under, or the
/// mean version of its tokens, rounded down, once all tokens are there (until then the former).
enum class AgeRule { FirstToken, TokenWeighted };

/// Measures that let the groups end sooner that a step waits for. None of them moves a group's
/// deadline or drops anything, so each may be on or off under any staleness rule.
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
  std::uint64_t every = 0;    ///< Steps; 0: never.
  std::int32_t problems = 0;  ///< Number of held-out problems.
  std::int32_t samples = 1;   ///< Responses per problem.
  double pass = 1;            ///< Smallest reward of a response that passes.
  bool checkpoint = true;     ///< Save a checkpoint of each evaluated version.
};

void describe(auto& v, StragglerConfig& c) {
  v.field(1,
          "even_load",
          c.even_load,
          {.doc = "No engine takes more than an even share of the responses in flight, even if it "
                  "has new weights before the others."});
  v.field(2,
          "migrate",
          c.migrate,
          {.doc = "Move responses that the next step needs from the most loaded engine to the "
                  "least loaded one. Without effect under `rollout.on_new_weights: finish`."});
  v.field(3,
          "deadline_first",
          c.deadline_first,
          {.doc = "Engines admit the oldest group first and preempt the youngest. While the "
                  "trainer waits, the reference scores in small batches."});
  v.field(4,
          "keep_kv",
          c.keep_kv,
          {.doc = "Keep or move the KV cache of an interrupted response where that is faster "
                  "than computing it again."});
  v.field(5,
          "predict_length",
          c.predict_length,
          {.doc = "Predict the length of a response from finished responses of its group; the "
                  "longest move first."});
  v.field(6,
          "dispatch_ahead",
          c.dispatch_ahead,
          {.doc = "Dispatch every group that the staleness rule admits. Off: at most one batch "
                  "per version."});
  v.field(7,
          "prepare",
          c.prepare,
          {.doc = "While the trainer waits for the rest of a batch, it computes the gradients of "
                  "the groups that are complete. The step is the same. Requires one minibatch, "
                  "`exact` or `sync`, and advantages within groups."});
}

void describe(auto& v, Deadlines& c) {
  constexpr Duration kMin = std::chrono::milliseconds(10);
  v.field(
      1,
      "start",
      c.start,
      {.doc = "From the launch of an actor until it is ready. Starts again while the worker shows "
              "that it loads (it uses the processor, reads from a disk or waits for its server), "
              "up to 20 times this limit in all.",
       .min = kMin});
  v.field(10,
          "attach",
          c.attach,
          {.doc = "`launch: attach`: until a worker has attached and is ready, if no other worker "
                  "of its role is.",
           .min = kMin});
  v.field(
      2, "generate", c.generate, {.doc = "A dispatched group that returns nothing.", .min = kMin});
  v.field(3, "reference", c.reference, {.doc = "One batch of reference scores.", .min = kMin});
  v.field(4,
          "reward",
          c.reward,
          {.doc = "One batch of rewards. At least four times `verifier.deadline`, if that is "
                  "set.",
           .min = kMin});
  v.field(5, "train", c.train, {.doc = "One step.", .min = kMin});
  v.field(6, "weights", c.weights, {.doc = "Staging or committing weights.", .min = kMin});
  v.field(7, "switching", c.switching, {.doc = "One action of a role switch.", .min = kMin});
  v.field(8, "checkpoint", c.checkpoint, {.doc = "Saving a checkpoint.", .min = kMin});
  v.field(9, "drain", c.drain, {.doc = "From a stop request to the end.", .min = kMin});
}

void describe(auto& v, EvaluationPlan& c) {
  v.field(1, "every", c.every);
  v.field(2, "problems", c.problems);
  v.field(3, "samples", c.samples);
  v.field(4, "pass", c.pass);
  v.field(5, "checkpoint", c.checkpoint);
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
