// Restarts: pauses that double, start deadlines that double, few starts at a time, and when what
// was lost before is forgiven.
#include "tests/support/scheduler_world.hpp"
#include "tests/support/scripted_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

namespace temper::orchestrator::testing {
namespace {

using namespace std::chrono_literals;

template <class C>
std::vector<C> of_kind(const Commands& commands) {
  std::vector<C> out;
  for (const Command& command : commands) {
    if (const auto* c = std::get_if<C>(&command))
      out.push_back(*c);
  }
  return out;
}

SchedulerConfig patient() {
  SchedulerConfig c = ScriptedRun::small_config();
  c.max_restarts = 1000;
  c.deadlines.start = 24h;
  return c;
}

/// Loses the actor; how long it is until it is launched again.
Duration pause_after_loss(ScriptedRun& run, ActorId actor) {
  const Commands commands = run.on(event::ActorDown{actor, "killed"});
  if (!of_kind<command::Launch>(commands).empty())
    return Duration(0);
  const auto discards = of_kind<command::Discard>(commands);
  EXPECT_EQ(discards.size(), 1U);
  EXPECT_EQ(discards.front().reason, reason_with(ReasonKind::WorkerLost, "killed"));
  const Duration pause = discards.front().until - run.now();
  run.wait(pause - 2ms);
  EXPECT_TRUE(of_kind<command::Launch>(run.on(event::DeadlineReached{})).empty()) << "too early";
  const auto launches = of_kind<command::Launch>(run.on(event::DeadlineReached{}));
  EXPECT_EQ(launches.size(), 1U);
  EXPECT_EQ(launches.front().actor, actor);
  EXPECT_EQ(launches.front().reason, std::nullopt) << "the discard has it";
  return pause;
}

TEST(Restarts, TheFirstIsAtOnceAndThenThePauseDoublesUpToAMinute) {
  ScriptedRun run(patient());
  for (const Duration expected : {0s, 1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
    run.ready(run.rollout());
    EXPECT_EQ(pause_after_loss(run, run.rollout()), expected);
  }
}

TEST(Restarts, ARunKnowsWhenThePauseIsOver) {
  ScriptedRun run(patient());
  for (std::uint32_t i = 0; i < 5; ++i)
    run.ready(ActorId(i));
  run.on(event::ActorDown{run.rollout(), "killed"});
  const auto discard = of_kind<command::Discard>(run.on(event::ActorDown{run.rollout(), "killed"}));
  ASSERT_EQ(discard.size(), 1U);
  EXPECT_EQ(run.scheduler().next_deadline(), discard.front().until);
}

TEST(Restarts, ACheckpointForgivesThoseAtWork) {
  ScriptedRun run(patient());
  run.ready(run.rollout());
  pause_after_loss(run, run.rollout());
  run.ready(run.rollout());
  EXPECT_EQ(pause_after_loss(run, run.rollout()), 1s);
  pause_after_loss(run, run.other_rollout());  // is starting when the checkpoint comes
  run.until<command::SaveCheckpoint>();
  EXPECT_EQ(run.scheduler().fleet().state(run.rollout()).restarts, 2);
  run.on(event::ActorDown{run.other_rollout(), "killed"});
  run.on(event::CheckpointSaved{PolicyVersion(1), ""});
  EXPECT_EQ(run.scheduler().fleet().state(run.rollout()).restarts, 0);
  EXPECT_EQ(run.scheduler().fleet().state(run.other_rollout()).restarts, 2)
      << "one that never starts is not forgiven";
}

TEST(Restarts, TimeAtWorkForgives) {
  SchedulerConfig config = patient();
  config.max_restarts = 1;
  config.restarts_forgiven_after = 1h;
  ScriptedRun run(config);
  for (int i = 0; i < 5; ++i) {
    run.ready(run.rollout());
    run.wait(1h);
    EXPECT_EQ(pause_after_loss(run, run.rollout()), 0s) << i;
    EXPECT_FALSE(run.scheduler().finished());
  }
  run.ready(run.rollout());
  run.wait(59min);
  const auto finish = of_kind<command::Finish>(run.on(event::ActorDown{run.rollout(), "killed"}));
  ASSERT_EQ(finish.size(), 1U) << "that was too soon";
  EXPECT_EQ(finish.front().reason,
            (Reason{.kind = ReasonKind::TooManyLosses, .actor = run.rollout(), .count = 2}));
  EXPECT_EQ(finish.front().last, reason_with(ReasonKind::WorkerLost, "killed"));
}

TEST(Restarts, AStartThatTookTooLongGetsTwiceTheTimeUpToEightTimes) {
  SchedulerConfig config = patient();
  config.deadlines.start = 10s;
  ScriptedRun run(config);
  const ActorState& engine = run.scheduler().fleet().state(run.rollout());
  for (std::uint32_t i = 1; i < 5; ++i)
    run.ready(ActorId(i));
  for (const Duration expected : {10s, 20s, 40s, 80s, 80s}) {
    ASSERT_EQ(engine.life, Life::Launching);
    EXPECT_NEAR(seconds(engine.launch_deadline - run.now()), seconds(expected), 0.1);
    run.wait(engine.launch_deadline - run.now());
    run.on(event::DeadlineReached{});
    if (engine.life == Life::Waiting) {
      run.wait(engine.launch_at - run.now());
      run.on(event::DeadlineReached{});
    }
  }
}

TEST(Restarts, ALossThatWasNotLateKeepsTheTime) {
  ScriptedRun run(patient());
  const ActorState& engine = run.scheduler().fleet().state(run.rollout());
  for (int i = 0; i < 4; ++i)
    pause_after_loss(run, run.rollout());
  EXPECT_EQ(engine.launch_deadline - run.now(), patient().deadlines.start);
}

// --- Starts that take long

SchedulerConfig with_short_starts() {
  SchedulerConfig c = patient();
  c.deadlines.start = 10s;
  c.deadlines.weights = 24h;
  return c;
}

/// The actors that a test of starts is not about.
void make_others_ready(ScriptedRun& run) {
  for (const auto role :
       {actors::RoleKind::Reference, actors::RoleKind::Reward, actors::RoleKind::Trainer})
    run.ready(run.with_role(role));
}

TEST(Starts, ThatGetOnHaveTheirTimeAnew) {
  ScriptedRun run(with_short_starts());
  make_others_ready(run);
  run.ready(run.other_rollout());
  for (int i = 0; i < 10; ++i) {  // 9 s each
    run.wait(9s);
    run.on(event::ActorLoading{run.rollout()});
    EXPECT_EQ(run.scheduler().fleet().state(run.rollout()).launch_deadline, run.now() + 10s);
  }
  run.ready(run.rollout());
  EXPECT_TRUE(run.scheduler().fleet().state(run.rollout()).ready());
}

TEST(Starts, ThatHangEndAtTheirDeadline) {
  ScriptedRun run(with_short_starts());
  make_others_ready(run);
  run.wait(9s);
  run.on(event::ActorLoading{run.rollout()});
  EXPECT_EQ(run.scheduler().fleet().state(run.other_rollout()).restarts, 0);
  run.wait(9s);
  run.on(event::DeadlineReached{});
  EXPECT_EQ(run.scheduler().fleet().state(run.rollout()).restarts, 0) << "it got on";
  EXPECT_EQ(run.scheduler().fleet().state(run.other_rollout()).restarts, 1) << "it hung";
  run.wait(1s);
  run.on(event::DeadlineReached{});
  EXPECT_EQ(run.scheduler().fleet().state(run.rollout()).restarts, 1) << "it hangs now";
}

TEST(Starts, GetOnForTwentyTimesTheirDeadlineAtMost) {
  ScriptedRun run(with_short_starts());
  make_others_ready(run);
  run.ready(run.other_rollout());
  const Time latest = run.scheduler().fleet().state(run.rollout()).launched_at + 200s;
  std::size_t told = 0;
  while (run.scheduler().fleet().state(run.rollout()).restarts == 0) {
    ASSERT_LT(run.now(), latest + 10s);
    run.wait(1s);
    if (run.scheduler().wants_to_know_that_loads(run.rollout(), run.now())) {
      run.on(event::ActorLoading{run.rollout()});
      ++told;
    }
    run.on(event::DeadlineReached{});
  }
  EXPECT_GE(run.now(), latest);
  EXPECT_LT(told, 80U) << "a sign of progress is recorded a few times for each deadline";
}

TEST(Starts, AreNotWatchedOnceTheActorIsReadyOrIsOfOthers) {
  SchedulerConfig config = patient();
  config.actors[1].attached = true;
  ScriptedRun run(config);
  run.wait(config.deadlines.start - 1s);
  EXPECT_TRUE(run.scheduler().wants_to_know_that_loads(run.rollout(), run.now()));
  EXPECT_FALSE(run.scheduler().wants_to_know_that_loads(run.other_rollout(), run.now()));
  run.ready(run.rollout());
  EXPECT_FALSE(run.scheduler().wants_to_know_that_loads(run.rollout(), run.now()));
  const auto before = run.scheduler().next_deadline();
  run.on(event::ActorLoading{run.rollout()});
  EXPECT_EQ(run.scheduler().next_deadline(), before);
}

// --- Starts that cannot succeed

std::optional<command::Finish> end_of(const Commands& commands) {
  const auto ends = of_kind<command::Finish>(commands);
  return ends.empty() ? std::nullopt : std::optional(ends.front());
}

TEST(Starts, ThatCannotSucceedEndTheRunAtTheFirstTryOfAnyActor) {
  for (std::uint32_t i = 0; i < ScriptedRun::small_config().actors.size(); ++i) {
    ScriptedRun run;
    const std::string name = run.scheduler().fleet().spec(ActorId(i)).name;
    const auto end = end_of(run.on(event::ActorDown{ActorId(i), "no class Engine", false, true}));
    ASSERT_TRUE(end) << name;
    EXPECT_FALSE(end->ok);
    EXPECT_FALSE(end->stopped);
    ASSERT_TRUE(end->reason) << name;
    EXPECT_EQ(end->reason->kind, ReasonKind::CannotStart);
    EXPECT_EQ(end->reason->actor, ActorId(i));
    EXPECT_EQ(end->reason->detail, "no class Engine");
    EXPECT_TRUE(run.scheduler().finished());
  }
}

TEST(Starts, AreTriedAgainWhereTheErrorMayPassOrAStartHasSucceededBefore) {
  const event::ActorDown passing{ActorId(0), "killed"};
  const event::ActorDown lasting{ActorId(0), "no class Engine", false, true};
  {
    ScriptedRun run(patient());
    EXPECT_FALSE(end_of(run.on(passing)));
    EXPECT_FALSE(end_of(run.on(lasting))) << "the second start";
  }
  {
    ScriptedRun run(patient());
    run.ready(run.rollout());
    EXPECT_FALSE(end_of(run.on(lasting))) << "it was at work";
  }
  {
    ScriptedRun run(patient());
    run.ready(run.rollout());
    run.on(passing);
    EXPECT_FALSE(end_of(run.on(lasting))) << "it started once";
  }
  {
    SchedulerConfig config = patient();
    config.actors[0].attached = true;
    ScriptedRun run(config);
    EXPECT_FALSE(end_of(run.on(lasting))) << "another host may have what this one lacks";
  }
  {
    ScriptedRun run(patient());
    run.on(event::Resumed{0, 1});
    EXPECT_FALSE(end_of(run.on(lasting))) << "after a rollback";
  }
}

TEST(Restarts, OnlySoManyStartAtOnceAndTheOthersFollow) {
  SchedulerConfig config = patient();
  config.starts_at_once = 2;
  ScriptedRun run(config);
  const auto launching = [&] {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < 5; ++i)
      count += run.scheduler().fleet().state(ActorId(i)).life == Life::Launching ? 1 : 0;
    return count;
  };
  EXPECT_EQ(launching(), 2U);
  EXPECT_EQ(run.scheduler().next_deadline(),
            run.scheduler().fleet().state(ActorId(0)).launch_deadline)
      << "those that wait for room wait for those that start";
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(run.scheduler().fleet().state(ActorId(i)).life, Life::Launching) << i;
    run.ready(ActorId(i));
    EXPECT_LE(launching(), 2U);
  }
  EXPECT_EQ(launching(), 0U);
}

TEST(Restarts, AStormOfLossesStartsFewAtATimeInTheirOrder) {
  SchedulerConfig config = ScriptedRun::small_config();
  config.actors.clear();
  for (std::uint32_t i = 0; i < 384; ++i)
    config.actors.push_back(
        {fmt::format("rollout-{}", i), actors::RoleKind::Rollout, {}, 4, false});
  config.actors.push_back({"reward-0", actors::RoleKind::Reward, {}, 0, false});
  config.actors.push_back({"trainer", actors::RoleKind::Trainer, {}, 0, false});
  config.starts_at_once = 16;
  config.max_restarts = 3;
  ScriptedRun run(config);
  std::set<ActorId> launching;
  std::size_t started = 0, most = 0;
  const auto note = [&](const Commands& commands) {
    for (const auto& c : of_kind<command::Launch>(commands))
      launching.insert(c.actor);
    most = std::max(most, launching.size());
  };
  for (std::uint32_t i = 0; i < 16; ++i)
    launching.insert(ActorId(i));
  while (!launching.empty() && started < 2000) {
    const ActorId first = *launching.begin();
    launching.erase(launching.begin());
    const bool trainer = first == run.scheduler().fleet().trainer();
    note(
        run.on(event::ActorReady{first, trainer ? std::optional(PolicyVersion(0)) : std::nullopt}));
    if (++started == 300) {  // a whole rack is gone at once
      for (std::uint32_t i = 0; i < 250; ++i)
        note(run.on(event::ActorDown{ActorId(i), "no power"}));
    }
  }
  EXPECT_EQ(started, 386U + 250U);
  EXPECT_EQ(most, 16U);
  EXPECT_FALSE(run.scheduler().finished());
}

TEST(Restarts, AfterARollbackTheRunPausesAndTheTrainerHasMoreTime) {
  Scheduler scheduler = Scheduler::restored(patient(), "").value();
  const Commands commands = scheduler.on(event::Resumed{0, 3}, Time(10s));
  EXPECT_TRUE(of_kind<command::Launch>(commands).empty());
  ASSERT_EQ(scheduler.next_deadline(), Time(12s));
  EXPECT_EQ(of_kind<command::Launch>(scheduler.on(event::DeadlineReached{}, Time(12s))).size(), 5U);
  const Fleet& fleet = scheduler.fleet();
  EXPECT_EQ(fleet.state(fleet.trainer()).launch_deadline,
            Time(12s) + 8 * patient().deadlines.start);
  EXPECT_EQ(fleet.state(ActorId(0)).launch_deadline, Time(12s) + patient().deadlines.start);
}

TEST(Restarts, AfterTheFirstRollbackEveryoneStartsAtOnce) {
  Scheduler scheduler = Scheduler::restored(patient(), "").value();
  EXPECT_EQ(of_kind<command::Launch>(scheduler.on(event::Resumed{0, 1}, Time(10s))).size(), 5U);
}

// --- Workers that others start

SchedulerConfig waiting_for_engines() {
  SchedulerConfig config = patient();
  config.deadlines.attach = 10s;
  config.starts_at_once = 1;
  for (ActorSpec& spec : config.actors)
    spec.attached = spec.role == actors::RoleKind::Rollout;
  return config;
}

TEST(AttachedActors, AreAllWaitedForAtOnceHoweverFewMayStart) {
  ScriptedRun run(waiting_for_engines());
  EXPECT_EQ(run.scheduler().fleet().state(run.rollout()).life, Life::Launching);
  EXPECT_EQ(run.scheduler().fleet().state(run.other_rollout()).life, Life::Launching);
}

TEST(AttachedActors, APlaceStaysFreeAsLongAsAnotherOfItsRoleIsAtWork) {
  ScriptedRun run(waiting_for_engines());
  run.ready(run.rollout());
  for (int i = 0; i < 5; ++i) {
    run.wait(11s);
    const Commands commands = run.on(event::DeadlineReached{});
    EXPECT_TRUE(of_kind<command::Finish>(commands).empty());
    EXPECT_TRUE(of_kind<command::Discard>(commands).empty());
  }
  EXPECT_EQ(run.scheduler().fleet().state(run.other_rollout()).restarts, 0);
  run.ready(run.other_rollout());
  EXPECT_TRUE(run.scheduler().fleet().state(run.other_rollout()).ready());
}

TEST(AttachedActors, WhereNobodyComesForARoleTheRunEndsAndSaysForWhomItWaited) {
  ScriptedRun run(waiting_for_engines());
  run.wait(11s);
  const auto finish = of_kind<command::Finish>(run.on(event::DeadlineReached{}));
  ASSERT_EQ(finish.size(), 1U);
  EXPECT_EQ(finish.front().reason,
            (Reason{.kind = ReasonKind::NobodyAttached,
                    .actor = run.scheduler().fleet().rollouts().front(),
                    .limit = std::chrono::seconds(10)}));
}

}  // namespace
}  // namespace temper::orchestrator::testing
