// Evaluations: which version is evaluated when, by which engines, and what counts.
#include "orchestrator/scheduler/evaluations/evaluations.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "tests/orchestrator/scheduler/run_state.hpp"

#include <algorithm>

namespace temper::orchestrator::testing {
namespace {

using actors::FinishReason;
using std::nullopt;

/// Two problems of two samples, at every second version of five.
SchedulerConfig evaluated_config(Shared shared = Shared::Nothing) {
  SchedulerConfig c = small_config(shared);
  c.steps = 5;
  c.evaluation = {.every = 2, .problems = 2, .samples = 2, .pass = 1, .checkpoint = true};
  return c;
}

ResponseId sample(std::uint64_t problem, std::uint64_t place) {
  return ResponseId((kFirstEvaluation + problem) * 2 + place);
}

struct EvaluatedRun {
  explicit EvaluatedRun(const SchedulerConfig& config = evaluated_config())
      : run(ready_run(config)), sharing(run) {}

  void advance() {
    run.out.clear();
    evaluations.advance(run);
  }
  void dispatch() {
    run.out.clear();
    evaluations.dispatch(run, sharing);
  }
  void judge() {
    run.out.clear();
    evaluations.judge(run, sharing);
  }
  /// The engine answers a response of its lease.
  void take(const command::Dispatch& c, std::size_t k, FinishReason finish = FinishReason::End) {
    evaluations.take(
        run,
        c.actor,
        {c.lease, c.responses.at(k), Tokens(5), Tokens(10), {{c.version, Tokens(10)}}, finish});
  }
  /// Every response is generated.
  void generate_all() {
    dispatch();
    for (const auto& c : emitted<command::Dispatch>(run)) {
      for (std::size_t k = 0; k < c.responses.size(); ++k)
        take(c, k);
    }
  }
  std::optional<PolicyVersion> under_way() const { return run.evaluation.version(); }

  RunState run;
  CardSharing sharing;
  Evaluations evaluations;
};

// --- When

TEST(Evaluations, BeginAtEachVersionThatIsDueAndOnlyOnce) {
  for (std::uint64_t v = 0; v <= 5; ++v) {
    EvaluatedRun e;
    publish(e.run, v);
    give_version(e.run, kEngine, v);
    e.advance();
    const bool due = v % 2 == 0 || v == 5;
    EXPECT_EQ(e.under_way(), due ? std::optional(version(v)) : nullopt) << v;
    e.run.evaluation.end();
    e.run.saved.evaluated = version(v);
    e.advance();
    EXPECT_EQ(e.under_way(), nullopt) << v;
  }
}

TEST(Evaluations, KeepTheVersionThatTheyBeganWith) {
  EvaluatedRun e;
  e.advance();
  publish(e.run, 2);
  e.advance();
  EXPECT_EQ(e.under_way(), version(0));
}

TEST(Evaluations, BeginWithTheNewestVersionOnceTheOneBeforeIsDone) {
  EvaluatedRun e;
  e.advance();
  e.generate_all();
  e.judge();
  const auto judged = only<command::Judge>(e.run);
  e.evaluations.take(e.run, {kReward, judged.lease, {{1}, {1}, {1}, {1}}});
  publish(e.run, 4);
  e.advance();
  EXPECT_EQ(only<command::Evaluated>(e.run).version, version(0));
  EXPECT_EQ(e.under_way(), version(4));
}

TEST(Evaluations, AreGivenUpOnAStopRequest) {
  EvaluatedRun e;
  e.advance();
  e.dispatch();
  const auto sent = emitted<command::Dispatch>(e.run);
  ASSERT_EQ(sent.size(), 2U);
  e.take(sent[0], 0);
  e.run.stop_requested = true;
  e.advance();
  EXPECT_EQ(e.under_way(), nullopt);
  std::vector<ResponseId> canceled;
  for (const auto& c : emitted<command::Cancel>(e.run))
    canceled.push_back(c.response);
  EXPECT_EQ(canceled, (std::vector{sample(0, 1), sample(1, 0), sample(1, 1)}));
  e.advance();
  EXPECT_EQ(e.under_way(), nullopt);  // and none begins
  EXPECT_TRUE(emitted<command::Evaluated>(e.run).empty());
}

TEST(Evaluations, RestartWithThePublishedVersionWhereNobodyHasTheirs) {
  EvaluatedRun e;
  e.advance();
  e.dispatch();
  const auto sent = emitted<command::Dispatch>(e.run);
  e.take(sent[0], 0);
  publish(e.run, 1);
  give_version(e.run, kOther, 1);
  e.run.evaluation.table().revoke_all(kOther);
  e.advance();
  EXPECT_EQ(e.under_way(), version(0));  // the first engine keeps it
  give_version(e.run, kEngine, 1);
  e.advance();
  EXPECT_EQ(e.under_way(), version(1));
  EXPECT_EQ(only<command::Cancel>(e.run).response, sample(0, 1));
  EXPECT_EQ(e.run.evaluation.table().ready(Task::Generate).size(), 4U);
}

TEST(Evaluations, WaitForAnEngineThatStartsOrIsGivenAnOlderVersion) {
  EvaluatedRun e;
  e.advance();
  publish(e.run, 1);
  give_version(e.run, kEngine, 1);
  give_version(e.run, kOther, 1);
  e.run.fleet.change(kOther).life = Life::Launching;
  e.advance();
  EXPECT_EQ(e.under_way(), version(0));
  e.run.fleet.change(kOther).life = Life::Ready;
  e.run.fleet.change(kOther).version.reset();
  e.run.fleet.change(kOther).staging = version(0);
  e.advance();
  EXPECT_EQ(e.under_way(), version(0));
  e.run.fleet.change(kOther).staging = version(1);
  e.advance();
  EXPECT_EQ(e.under_way(), version(1));
}

TEST(Evaluations, DoNotCountOnLentCards) {
  EvaluatedRun e(evaluated_config(Shared::OneEngine));
  e.advance();
  publish(e.run, 1);
  give_version(e.run, kEngine, 1);
  give_version(e.run, kOther, 0);
  e.dispatch();
  EXPECT_TRUE(e.run.out.empty());
  e.advance();
  EXPECT_EQ(e.under_way(), version(1));
}

// --- Engines

TEST(Evaluations, SendEachProblemToTheEmptiestEngineThatHasTheVersion) {
  EvaluatedRun e;
  e.advance();
  generating_group(e.run, kEngine);
  e.dispatch();
  const auto sent = emitted<command::Dispatch>(e.run);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].actor, kOther);
  EXPECT_EQ(sent[1].actor, kEngine);
  EXPECT_EQ(sent[0].group, GroupId(kFirstEvaluation));
  EXPECT_EQ(sent[0].responses, (std::vector{sample(0, 0), sample(0, 1)}));
  EXPECT_EQ(sent[0].version, version(0));
  EXPECT_TRUE(is_evaluation(sent[0].lease));
}

TEST(Evaluations, LeaveOutEnginesWithoutRoomOrWithAnotherVersion) {
  using Change = void (*)(RunState&);
  for (const Change change :
       {Change([](RunState& run) { give_version(run, kOther, 1); }),
        Change([](RunState& run) { run.fleet.change(kOther).staging = version(1); }),
        Change([](RunState& run) { run.fleet.change(kOther).has_kv = false; }),
        Change([](RunState& run) { run.fleet.change(kOther).life = Life::Launching; }),
        Change([](RunState& run) {
          for (int i = 0; i < 2; ++i)
            generating_group(run, kOther);
        })}) {
    EvaluatedRun e;
    e.advance();
    change(e.run);
    e.dispatch();
    for (const auto& c : emitted<command::Dispatch>(e.run))
      EXPECT_EQ(c.actor, kEngine);
    EXPECT_EQ(emitted<command::Dispatch>(e.run).size(), 2U);
  }
}

TEST(Evaluations, KeepTheirVersionOnEnginesAsLongAsTheyNeedIt) {
  EvaluatedRun e;
  EXPECT_EQ(wanted_version(e.run, kEngine), version(0));
  e.advance();
  publish(e.run, 1);
  // Problems wait: engines with the version keep it, new ones get it, newer ones keep theirs.
  EXPECT_EQ(wanted_version(e.run, kEngine), version(0));
  e.run.fleet.change(kOther).version.reset();
  EXPECT_EQ(wanted_version(e.run, kOther), version(0));
  give_version(e.run, kOther, 1);
  EXPECT_EQ(wanted_version(e.run, kOther), version(1));
  // None waits: only an engine that generates for it does.
  e.dispatch();
  const auto sent = emitted<command::Dispatch>(e.run);
  EXPECT_EQ(wanted_version(e.run, kEngine), version(0));
  give_version(e.run, kOther, 0);
  EXPECT_EQ(wanted_version(e.run, kOther), version(1));
  for (const auto& c : sent) {
    for (std::size_t k = 0; k < 2; ++k)
      e.take(c, k);
  }
  EXPECT_EQ(wanted_version(e.run, kEngine), version(1));
}

TEST(Evaluations, DoNotKeepAVersionOnSharedCards) {
  EvaluatedRun e(evaluated_config(Shared::Engines));
  e.advance();
  publish(e.run, 1);
  EXPECT_EQ(wanted_version(e.run, kEngine), version(1));
}

TEST(Evaluations, SendAnInterruptedResponseAgain) {
  EvaluatedRun e;
  e.advance();
  e.dispatch();
  const auto sent = emitted<command::Dispatch>(e.run);
  e.take(sent[0], 1, FinishReason::Interrupted);
  EXPECT_TRUE(e.run.evaluation.generates());
  e.dispatch();
  EXPECT_EQ(only<command::Dispatch>(e.run).responses, std::vector{sample(0, 1)});
}

// --- Results

TEST(Evaluations, GiveEachVerifierOneBatchAtATime) {
  SchedulerConfig config = evaluated_config();
  config.judge_batch = 3;
  config.actors.push_back({"reward-1", actors::RoleKind::Reward, {}, 0, false});
  EvaluatedRun e(config);
  e.advance();
  e.generate_all();
  e.judge();
  const auto sent = emitted<command::Judge>(e.run);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].actor, kReward);
  EXPECT_EQ(sent[0].responses.size(), 3U);
  EXPECT_EQ(sent[1].actor, ActorId(5));
  EXPECT_EQ(sent[1].responses.size(), 1U);
  e.run.evaluation.table().revoke_all(ActorId(5));
  e.run.fleet.change(ActorId(5)).life = Life::Launching;
  e.judge();
  EXPECT_TRUE(e.run.out.empty());  // the other one is busy
  e.evaluations.take(e.run, {kReward, sent[0].lease, {{1}, {1}, {1}}});
  e.judge();
  EXPECT_EQ(only<command::Judge>(e.run).actor, kReward);
}

TEST(Evaluations, CountRewardsPassesAndFailures) {
  EvaluatedRun e;
  e.run.now = at(10);
  e.advance();
  e.dispatch();
  const auto sent = emitted<command::Dispatch>(e.run);
  e.take(sent[0], 0);
  e.take(sent[0], 1);
  e.take(sent[1], 0);
  e.take(sent[1], 1, FinishReason::Failed);
  e.judge();
  const auto judge = only<command::Judge>(e.run);
  EXPECT_EQ(judge.responses, (std::vector{sample(0, 0), sample(0, 1), sample(1, 0)}));
  e.evaluations.take(e.run, {kReward, judge.lease, {{1}, {0.5}, {0, true}}});
  e.run.now = at(25);
  e.advance();
  const auto result = only<command::Evaluated>(e.run);
  EXPECT_EQ(result.version, version(0));
  EXPECT_EQ(result.began, at(10));
  EXPECT_DOUBLE_EQ(result.seconds, 15);
  EXPECT_EQ(result.problems, 2U);
  EXPECT_EQ(result.samples, 2U);
  EXPECT_EQ(result.failed, 2U);
  EXPECT_EQ(result.passed, 1U);
  EXPECT_EQ(result.solved, 1U);
  EXPECT_EQ(result.tokens, Tokens(40));
  EXPECT_DOUBLE_EQ(result.reward, 1.5 / 4);
  EXPECT_DOUBLE_EQ(result.pass_1, 0.25);
  EXPECT_DOUBLE_EQ(result.pass_k, 0.5);
  EXPECT_TRUE(result.best);
  EXPECT_EQ(e.run.saved.evaluated, version(0));
  EXPECT_EQ(e.run.saved.best, 0.25);
}

TEST(Evaluations, NameTheBestOfAllSoFar) {
  for (const double before : {0.2, 0.5, 0.7}) {
    EvaluatedRun e;
    e.run.saved.best = before;
    e.advance();
    e.generate_all();
    e.judge();
    e.evaluations.take(e.run, {kReward, only<command::Judge>(e.run).lease, {{1}, {1}, {0}, {0}}});
    e.advance();
    EXPECT_EQ(only<command::Evaluated>(e.run).best, before < 0.5) << before;
    EXPECT_EQ(e.run.saved.best, std::max(before, 0.5));
  }
}

TEST(Evaluations, IgnoreResultsUnderALeaseThatIsOverOrOfAnother) {
  EvaluatedRun e;
  e.advance();
  e.dispatch();
  auto sent = emitted<command::Dispatch>(e.run);
  auto stolen = sent[0];
  stolen.actor = stolen.actor == kEngine ? kOther : kEngine;
  e.take(stolen, 0);
  e.run.evaluation.table().revoke_all(sent[0].actor);
  e.take(sent[0], 0);
  restart_evaluation(e.run);
  e.take(sent[1], 0);
  EXPECT_EQ(e.run.evaluation.table().ready(Task::Generate).size(), 4U);
  EXPECT_TRUE(e.run.evaluation.table().ready(Task::Reward).empty());
  e.run.evaluation.end();
  e.take(sent[1], 1);
  e.evaluations.take(e.run, {kReward, sent[1].lease, {{1}, {1}}});
  EXPECT_EQ(e.under_way(), nullopt);
}

}  // namespace
}  // namespace temper::orchestrator::testing
