// Lifecycle: launches, pauses between restarts, and losses that end a run or roll it back.
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "tests/orchestrator/scheduler/launched_run.hpp"

namespace temper::orchestrator::testing {
namespace {

using namespace std::chrono_literals;
// --- Starts

TEST(Lifecycle, LaunchesEveryActorAtTheStartInTheOrderOfTheirIds) {
  SchedulerConfig config = small_config();
  config.actors[2].away = true;
  Launched l(config);
  EXPECT_EQ(launched(l.run), (Actors{kTrainer, kEngine, kReference, kReward}));
  EXPECT_EQ(l.run.fleet.state(kOther).life, Life::Down);
  for (const auto& c : emitted<command::Launch>(l.run))
    EXPECT_EQ(c.reason, std::nullopt);
  EXPECT_EQ(l.run.fleet.next_deadline(), at(30));
}

TEST(Lifecycle, LaunchesAsManyAtOnceAsMayStartAndTheOthersAsRoomComes) {
  SchedulerConfig config = small_config();
  config.starts_at_once = 2;
  Launched l(config);
  EXPECT_EQ(launched(l.run), (Actors{kTrainer, kEngine}));
  l.run.out.clear();
  l.lifecycle.start_waiting(l.run);
  EXPECT_TRUE(l.run.out.empty());
  l.ready(kEngine);
  l.lifecycle.start_waiting(l.run);
  EXPECT_EQ(launched(l.run), Actors{kOther});
}

TEST(Lifecycle, DoesNotCountAttachedWorkersAmongThoseThatStart) {
  SchedulerConfig config = small_config();
  config.starts_at_once = 1;
  config.actors[1].attached = config.actors[2].attached = true;
  Launched l(config);
  EXPECT_EQ(launched(l.run), (Actors{kTrainer, kEngine, kOther}));
}

TEST(Lifecycle, PausesAfterRollbacksAndGivesTheTrainerMoreTime) {
  Launched l(small_config(), 2);
  EXPECT_TRUE(launched(l.run).empty());
  EXPECT_EQ(l.run.fleet.next_deadline(), at(1));
  l.advance_to(at(1));
  EXPECT_EQ(launched(l.run).size(), 5U);
  EXPECT_EQ(l.run.fleet.state(kTrainer).launch_deadline, at(1 + 4 * 30));
  EXPECT_EQ(l.run.fleet.state(kEngine).launch_deadline, at(1 + 30));
}

TEST(Lifecycle, TakesAnActorAsReadyOnlyWhileItStarts) {
  Launched l;
  l.run.now = at(3);
  l.ready(kEngine);
  EXPECT_TRUE(l.run.fleet.state(kEngine).ready());
  EXPECT_EQ(l.run.fleet.state(kEngine).ready_since, at(3));
  l.run.now = at(4);
  l.ready(kEngine);
  EXPECT_EQ(l.run.fleet.state(kEngine).ready_since, at(3));
  l.run.fleet.renew(kOther, Life::Down);
  l.ready(kOther);
  EXPECT_FALSE(l.run.fleet.state(kOther).ready());
}

TEST(Lifecycle, EndsARunWhoseTrainerHasOtherWeights) {
  Launched l;
  l.run.saved.progress.version = version(3);
  l.lifecycle.on_ready(l.run, {kTrainer, version(2)});
  EXPECT_EQ(only<command::Finish>(l.run).reason,
            (Reason{.kind = ReasonKind::WrongWeights,
                    .actor = kTrainer,
                    .version = version(2),
                    .expected = version(3)}));
}

TEST(Lifecycle, EndsARunWhoseActorCannotStartUnlessAnEarlierStartSucceeded) {
  const event::ActorDown cannot{kEngine, "no such model", false, true};
  {
    Launched l;
    l.run.out.clear();
    l.lifecycle.on_down(l.run, cannot);
    const auto end = only<command::Finish>(l.run);
    EXPECT_EQ(end.reason->kind, ReasonKind::CannotStart);
    EXPECT_EQ(end.reason->actor, kEngine);
    EXPECT_EQ(end.reason->detail, "no such model");
  }
  Launched up;
  up.everybody_is_ready();
  up.lifecycle.on_down(up.run, cannot);
  EXPECT_EQ(launched(up.run), Actors{kEngine});
  up.lifecycle.on_down(up.run, cannot);  // a second start
  EXPECT_FALSE(up.run.finished);
  Launched resumed(small_config(), 1);
  resumed.lifecycle.on_down(resumed.run, cannot);
  EXPECT_FALSE(resumed.run.finished);
}

// --- Restarts

TEST(Lifecycle, LaunchesALostActorAtOnceAndTellsWhy) {
  Launched l;
  l.everybody_is_ready();
  l.lifecycle.on_down(l.run, {kEngine, "exit code 1"});
  const auto again = only<command::Launch>(l.run);
  EXPECT_EQ(again.actor, kEngine);
  EXPECT_EQ(again.reason, kCrash);
  l.run.out.clear();
  l.lifecycle.on_down(l.run, {kOther, "trainer.trained: a lie", true});
  EXPECT_EQ(only<command::Launch>(l.run).reason->kind, ReasonKind::ProtocolViolation);
}

TEST(Lifecycle, DoublesThePauseFromTheSecondRestartOnUpToAMinute) {
  SchedulerConfig config = small_config();
  config.max_restarts = 20;
  Launched l(config);
  l.everybody_is_ready();
  for (const std::int64_t pause : {0, 1, 2, 4, 8, 16, 32, 60, 60, 60}) {
    l.run.out.clear();
    l.lifecycle.lose(l.run, kEngine, kCrash);
    if (pause == 0) {
      EXPECT_EQ(launched(l.run), Actors{kEngine});
      continue;
    }
    const auto gone = only<command::Discard>(l.run);
    const Time until = l.run.now + std::chrono::seconds(pause);
    EXPECT_EQ(gone.reason, kCrash);
    EXPECT_EQ(gone.until, until);
    EXPECT_EQ(l.run.fleet.next_deadline(), until);
    l.advance_to(until - 1ns);
    EXPECT_TRUE(l.run.out.empty());
    l.advance_to(until);
    EXPECT_EQ(only<command::Launch>(l.run).reason, std::nullopt);  // the Discard has it
  }
}

TEST(Lifecycle, WaitsWithARestartForRoom) {
  SchedulerConfig config = small_config();
  config.starts_at_once = 1;
  config.actors.resize(3);
  Launched l(config);
  l.ready(kTrainer);
  l.advance_to(at(1));
  l.ready(kEngine);
  l.advance_to(at(2));
  EXPECT_EQ(launched(l.run), Actors{kOther});
  l.run.out.clear();
  l.lifecycle.lose(l.run, kEngine, kCrash);  // kOther still starts
  EXPECT_EQ(only<command::Discard>(l.run).until, at(2));
  EXPECT_TRUE(launched(l.run).empty());
  l.ready(kOther);
  l.lifecycle.start_waiting(l.run);
  EXPECT_EQ(launched(l.run), Actors{kEngine});
}

TEST(Lifecycle, ForgivesRestartsAfterTimeAtWork) {
  for (const bool forgiven : {false, true}) {
    Launched l;
    l.everybody_is_ready();
    l.lifecycle.lose(l.run, kEngine, kCrash);
    l.ready(kEngine);
    l.run.now += l.run.config.restarts_forgiven_after - (forgiven ? 0ns : 1ns);
    l.lifecycle.lose(l.run, kEngine, kCrash);
    EXPECT_EQ(l.run.fleet.state(kEngine).restarts, forgiven ? 1 : 2);
  }
}

TEST(Lifecycle, ForgivesAtACheckpointThoseThatAreReady) {
  Launched l;
  l.everybody_is_ready();
  l.lifecycle.lose(l.run, kEngine, kCrash);
  l.lifecycle.lose(l.run, kOther, kCrash);
  l.ready(kEngine);
  l.lifecycle.on_checkpoint(l.run);
  EXPECT_EQ(l.run.fleet.state(kEngine).restarts, 0);
  EXPECT_EQ(l.run.fleet.state(kOther).restarts, 1);
}

TEST(Lifecycle, EndsTheRunAfterTooManyLossesInARow) {
  SchedulerConfig config = small_config();
  config.max_restarts = 2;
  Launched l(config);
  l.everybody_is_ready();
  for (int i = 0; i < 2; ++i) {
    l.lifecycle.lose(l.run, kEngine, kCrash);
    l.advance_to(l.run.now + 1s);
  }
  EXPECT_FALSE(l.run.finished);
  l.lifecycle.lose(l.run, kEngine, kCrash);
  const auto end = only<command::Finish>(l.run);
  EXPECT_EQ(end.reason, (Reason{.kind = ReasonKind::TooManyLosses, .actor = kEngine, .count = 3}));
  EXPECT_EQ(end.last, kCrash);
}

TEST(Lifecycle, RollsBackWhereTheTrainerIsLost) {
  Launched l;
  l.everybody_is_ready();
  l.lifecycle.lose(l.run, kTrainer, kCrash);
  Reason reason = kCrash;
  reason.actor = kTrainer;
  EXPECT_EQ(only<command::Rollback>(l.run).reason, reason);
  EXPECT_TRUE(l.run.finished);
  EXPECT_TRUE(emitted<command::Finish>(l.run).empty());
}

TEST(Lifecycle, EndsTheRunAfterTooManyRollbacksWithoutACheckpoint) {
  for (const bool checkpoint : {false, true}) {
    Launched l(small_config(), 3);
    l.advance_to(at(60));
    l.everybody_is_ready();
    if (checkpoint)
      l.lifecycle.on_checkpoint(l.run);
    l.lifecycle.lose(l.run, kTrainer, kCrash);
    if (checkpoint) {
      EXPECT_EQ(emitted<command::Rollback>(l.run).size(), 1U);
      continue;
    }
    EXPECT_EQ(only<command::Finish>(l.run).reason,
              (Reason{.kind = ReasonKind::TooManyLosses, .actor = kTrainer, .count = 4}));
    EXPECT_EQ(only<command::Finish>(l.run).last, kCrash);
  }
}

TEST(Lifecycle, TakesTheWorkOfALostActorBack) {
  SchedulerConfig config = small_config();
  config.evaluation = {.every = 1, .problems = 1, .samples = 1};
  Launched l(config);
  l.everybody_is_ready();
  generating_group(l.run, kEngine);
  generating_group(l.run, kOther);
  l.run.withdrawn = {ResponseId(0), ResponseId(2)};
  l.run.evaluation.begin(version(0), at(0));
  l.run.evaluation.table().lease(Task::Generate, kEngine, {ResponseId(kFirstEvaluation)}, at(100));
  l.lifecycle.lose(l.run, kEngine, kCrash);
  EXPECT_EQ(l.run.load_of(kEngine).leases, 0);
  EXPECT_EQ(l.run.load_of(kOther).leases, 1);
  EXPECT_EQ(l.run.saved.queue.ready(Task::Generate).size(), 2U);
  EXPECT_TRUE(l.run.evaluation.wants_engine());
  EXPECT_EQ(l.run.withdrawn, std::set{ResponseId(2)});  // the other engine still has it
}

TEST(Lifecycle, LosesAnActorOnlyOnce) {
  Launched l;
  l.everybody_is_ready();
  for (int i = 0; i < 2; ++i)
    l.lifecycle.lose(l.run, kEngine, kCrash);  // lost, and lost while it starts again
  l.run.out.clear();
  l.lifecycle.lose(l.run, kEngine, kCrash);  // it waits for its pause
  EXPECT_TRUE(l.run.out.empty());
  EXPECT_EQ(l.run.fleet.state(kEngine).restarts, 2);
}

// --- Attached workers

TEST(Lifecycle, KeepsAnAttachedSlotFreeWhileAnotherOfItsRoleIsReady) {
  SchedulerConfig config = small_config();
  config.actors[2].attached = true;
  Launched l(config);
  EXPECT_EQ(l.run.fleet.state(kOther).launch_deadline, at(600));
  for (const ActorId actor : {kTrainer, kEngine, kReference, kReward})
    l.ready(actor);
  l.advance_to(at(600));
  EXPECT_TRUE(l.run.out.empty());
  EXPECT_EQ(l.run.fleet.state(kOther).launch_deadline, at(1200));
}

TEST(Lifecycle, EndsTheRunWhereNobodyAttachesForARole) {
  SchedulerConfig config = small_config();
  config.actors[1].attached = config.actors[2].attached = true;
  Launched l(config);
  for (const ActorId actor : {kTrainer, kReference, kReward})
    l.ready(actor);
  l.advance_to(at(600));
  EXPECT_EQ(only<command::Finish>(l.run).reason,
            (Reason{.kind = ReasonKind::NobodyAttached, .actor = kEngine, .limit = 600s}));
}

}  // namespace
}  // namespace temper::orchestrator::testing
