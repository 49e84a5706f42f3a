// Deadlines of starts, weights, switches, leases, checkpoints and stop requests.
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "tests/orchestrator/scheduler/launched_run.hpp"

#include <algorithm>
#include <functional>

namespace temper::orchestrator::testing {
namespace {

using namespace std::chrono_literals;

TEST(LifecycleDeadlines, ActsOnEachDeadlineAndNamesIt) {
  struct Case {
    DeadlineKind kind;
    ActorId actor;
    std::function<void(RunState&)> begin;  ///< At 0 s.
    std::int64_t limit;                    ///< Seconds.
    std::uint64_t count = 0;
    bool evaluation = false;
  };
  const auto lease = [](Task task, ActorId actor, std::int64_t limit, GroupId (*make)(RunState&)) {
    return [=](RunState& run) {
      const GroupId group = make(run);
      run.saved.queue.lease(task, actor, run.saved.queue.live_responses(group), at(limit));
    };
  };
  const auto fresh = [](RunState& run) { return add_group(run); };
  const auto ended = [](RunState& run) { return generated_group(run); };
  const auto whole = [](RunState& run) { return trainable_group(run); };
  using A = actors::SwitchAction;
  const std::vector<Case> cases = {
      {DeadlineKind::StageWeights,
       kEngine,
       [](RunState& run) {
         run.fleet.change(kEngine).staging = version(1);
         run.fleet.change(kEngine).weights_deadline = at(60);
       },
       60},
      {DeadlineKind::CommitWeights,
       kEngine,
       [](RunState& run) {
         run.fleet.change(kEngine).staging = version(1);
         run.fleet.change(kEngine).committing = true;
         run.fleet.change(kEngine).weights_deadline = at(60);
       },
       60},
      {DeadlineKind::Switch,
       kEngine,
       [](RunState& run) {
         run.fleet.change(kEngine).switching = A::FreeKv;
         run.fleet.change(kEngine).switch_deadline = at(60);
       },
       60},
      {DeadlineKind::Generate, kOther, lease(Task::Generate, kOther, 120, fresh), 120, 2},
      {DeadlineKind::Reference, kReference, lease(Task::Reference, kReference, 60, ended), 60, 2},
      {DeadlineKind::Reward, kReward, lease(Task::Reward, kReward, 60, ended), 60, 2},
      {DeadlineKind::Generate,
       kEngine,
       [](RunState& run) {
         run.evaluation.begin(version(0), at(0));
         run.evaluation.table().lease(
             Task::Generate, kEngine, {ResponseId(kFirstEvaluation)}, at(120));
       },
       120,
       1,
       true},
      {DeadlineKind::Train, kTrainer, lease(Task::Train, kTrainer, 300, whole), 300, 2}};
  for (const Case& c : cases) {
    SchedulerConfig config = small_config();
    config.evaluation = {.every = 1, .problems = 1, .samples = 1};
    Launched l(config);
    l.everybody_is_ready();
    c.begin(l.run);
    l.advance_to(at(c.limit) - 1ns);
    EXPECT_TRUE(l.run.out.empty()) << int(c.kind);
    l.advance_to(at(c.limit));
    Reason reason;
    if (c.actor == kTrainer) {
      reason = only<command::Rollback>(l.run).reason;
    } else {
      const auto again = only<command::Launch>(l.run);
      EXPECT_EQ(again.actor, c.actor) << int(c.kind);
      reason = again.reason.value();
    }
    EXPECT_EQ(reason.kind, ReasonKind::DeadlinePassed);
    EXPECT_EQ(reason.deadline, c.kind);
    EXPECT_EQ(reason.limit, std::chrono::seconds(c.limit)) << int(c.kind);
    EXPECT_EQ(reason.count, c.count) << int(c.kind);
    EXPECT_EQ(reason.evaluation, c.evaluation) << int(c.kind);
    const bool weights =
        c.kind == DeadlineKind::StageWeights || c.kind == DeadlineKind::CommitWeights;
    EXPECT_EQ(reason.version, weights ? std::optional(version(1)) : std::nullopt);
    EXPECT_EQ(reason.action,
              c.kind == DeadlineKind::Switch ? std::optional(A::FreeKv) : std::nullopt);
  }
}

TEST(LifecycleDeadlines, EndsTheRunAtTheDeadlinesOfACheckpointAndOfAStopRequest) {
  for (const bool drains : {false, true}) {
    Launched l;
    l.everybody_is_ready();
    (drains ? l.run.drain_deadline : l.run.trainer.saving) = at(50);
    l.advance_to(at(50) - 1ns);
    EXPECT_FALSE(l.run.finished);
    l.advance_to(at(50));
    const auto end = only<command::Finish>(l.run);
    EXPECT_EQ(end.stopped, drains);
    EXPECT_EQ(end.reason->deadline, drains ? DeadlineKind::Drain : DeadlineKind::Checkpoint);
    EXPECT_EQ(end.reason->limit, drains ? 30s : 60s);
    EXPECT_EQ(end.reason->actor, drains ? std::nullopt : std::optional(kTrainer));
  }
}

TEST(LifecycleDeadlines, DoublesTheTimeOfAStartAfterEachThatWasTooLateUpToEightTimes) {
  SchedulerConfig config = small_config();
  config.max_restarts = 20;
  Launched l(config);
  for (std::uint32_t i = 0; i < 5; ++i) {
    if (ActorId(i) != kEngine)
      l.ready(ActorId(i));
  }
  for (const std::int64_t limit : {30, 60, 120, 240, 240}) {
    const Time deadline = l.run.fleet.state(kEngine).launch_deadline;
    EXPECT_EQ(deadline - l.run.fleet.state(kEngine).launched_at, std::chrono::seconds(limit));
    l.advance_to(deadline);
    const auto launches = emitted<command::Launch>(l.run);
    const auto gone = emitted<command::Discard>(l.run);
    const Reason reason =
        launches.empty() ? gone.front().reason.value() : launches.front().reason.value();
    EXPECT_EQ(reason.deadline, DeadlineKind::Start);
    EXPECT_EQ(reason.limit, std::chrono::seconds(limit));
    if (launches.empty())
      l.advance_to(gone.front().until);
  }
}

TEST(LifecycleDeadlines, MovesTheDeadlineOfAStartThatGetsOnUpToTwentyTimes) {
  Launched l;
  for (std::int64_t t = 20; t < 600; t += 20) {
    l.advance_to(at(t));
    for (std::uint32_t i = 0; i < 5; ++i)
      l.lifecycle.on_loading(l.run, {ActorId(i)});
    EXPECT_EQ(l.run.fleet.state(kEngine).launch_deadline, at(std::min<std::int64_t>(t + 30, 600)));
  }
  EXPECT_FALSE(l.lifecycle.wants_to_know_that_loads(l.run, kEngine, at(590)));
  for (std::uint32_t i = 0; i < 5; ++i) {
    if (ActorId(i) != kEngine)
      l.ready(ActorId(i));
  }
  l.advance_to(at(600));
  const auto again = only<command::Launch>(l.run);
  EXPECT_EQ(again.reason->deadline, DeadlineKind::LongestStart);
  EXPECT_EQ(again.reason->limit, 600s);
}

TEST(LifecycleDeadlines, WantsToKnowThatAnActorLoadsOnceAQuarterOfItsTimeIsOver) {
  SchedulerConfig config = small_config();
  config.actors[2].attached = true;
  const Launched l(config);
  EXPECT_FALSE(l.lifecycle.wants_to_know_that_loads(l.run, kEngine, at(7)));
  EXPECT_TRUE(l.lifecycle.wants_to_know_that_loads(l.run, kEngine, at(7.5)));
  EXPECT_FALSE(l.lifecycle.wants_to_know_that_loads(l.run, kOther, at(29)));
}

}  // namespace
}  // namespace temper::orchestrator::testing
