// Actors that come to a run and are taken from it while it goes on.
#include "core/check.hpp"
#include "tests/support/scripted_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::orchestrator::testing {
namespace {

/// The actors of a run, with this one away or back.
std::vector<ActorSpec> with(const ScriptedRun& run, ActorId actor, bool away) {
  std::vector<ActorSpec> actors = run.scheduler().config().actors;
  actors.at(actor.value()).away = away;
  return actors;
}

template <class C>
const C* find(const Commands& commands) {
  const auto it =
      std::ranges::find_if(commands, [](const Command& c) { return std::holds_alternative<C>(c); });
  return it == commands.end() ? nullptr : std::get_if<C>(&*it);
}

/// A rollout engine that is ready and has nothing to do. Requires: there is one.
ActorId idle_engine(const Scheduler& scheduler) {
  const auto idle = std::ranges::find_if(scheduler.fleet().rollouts(), [&](ActorId id) {
    const ActorState& a = scheduler.fleet().state(id);
    return a.ready() && !a.staging && !a.switching && scheduler.load_of(id).leases == 0;
  });
  TEMPER_CHECK(idle != scheduler.fleet().rollouts().end(), "an engine is idle");
  return *idle;
}

TEST(Scale, AnEngineThatIsTakenAwayHandsBackWhatItHasAndEndsInOrder) {
  ScriptedRun run;
  run.until<command::Dispatch>();
  const command::Dispatch work = run.last<command::Dispatch>();
  Commands said = run.on(event::Scaled{with(run, work.actor, true), {}});
  const auto* withdraw = find<command::Withdraw>(said);
  ASSERT_NE(withdraw, nullptr);
  EXPECT_EQ(withdraw->actor, work.actor);
  EXPECT_EQ(withdraw->responses, work.responses);
  EXPECT_EQ(find<command::Retire>(said), nullptr) << "it owes responses";

  event::Generated back = run.generated(work);
  for (auto& item : back.items)
    item.finish = actors::FinishReason::Interrupted;
  ASSERT_EQ(run.scheduler().find_invalid_claim(back, run.now()), std::nullopt);
  said = run.on(back);
  const auto* retire = find<command::Retire>(said);
  ASSERT_NE(retire, nullptr);
  EXPECT_EQ(retire->actor, work.actor);
  const auto* again = find<command::Dispatch>(said);
  if (again != nullptr) {
    EXPECT_NE(again->actor, work.actor);
  }
  said = run.on(event::ActorDown{work.actor, "ended"});
  EXPECT_EQ(find<command::Launch>(said), nullptr) << "nobody is started in its place";
}

TEST(Scale, AnEngineThatHasNothingToDoEndsAtOnceAndMayComeBack) {
  ScriptedRun run;
  run.until<command::Judge>();
  const ActorId engine = idle_engine(run.scheduler());
  Commands said = run.on(event::Scaled{with(run, engine, true), {}});
  ASSERT_NE(find<command::Retire>(said), nullptr);
  run.on(event::ActorDown{engine, "ended"});
  said = run.on(event::Scaled{with(run, engine, false), {}});
  const auto* launch = find<command::Launch>(said);
  ASSERT_NE(launch, nullptr);
  EXPECT_EQ(launch->actor, engine);
}

TEST(Scale, WhoIsBroughtBackBeforeItHasEndedIsNotHeardUntilItIsStartedAgain) {
  ScriptedRun run;
  run.until<command::Judge>();
  const ActorId engine = idle_engine(run.scheduler());
  run.on(event::Scaled{with(run, engine, true), {}});
  const Commands said = run.on(event::Scaled{with(run, engine, false), {}});
  const auto* discard = find<command::Discard>(said);
  ASSERT_NE(discard, nullptr) << "what the old worker still says would be of one that is down";
  EXPECT_EQ(discard->actor, engine);
  EXPECT_EQ(discard->reason, std::nullopt) << "it was not lost";
  ASSERT_NE(find<command::Launch>(said), nullptr);
}

TEST(Scale, AnEngineThatComesIsLaunchedGivenTheWeightsAndWork) {
  ScriptedRun run;
  run.until<command::Train>();
  std::vector<ActorSpec> actors = run.scheduler().config().actors;
  actors.push_back({"rollout-2", actors::RoleKind::Rollout, {}, 4, false});
  const ActorId fresh(static_cast<std::uint32_t>(actors.size() - 1));
  const Commands said = run.on(event::Scaled{actors, {}});
  const auto* launch = find<command::Launch>(said);
  ASSERT_NE(launch, nullptr);
  EXPECT_EQ(launch->actor, fresh);
  run.ready(fresh);
  const command::StageWeights stage = run.last<command::StageWeights>();
  EXPECT_EQ(stage.actor, fresh);
  EXPECT_EQ(stage.version, run.scheduler().progress().version);
}

TEST(Scale, WhoWasLostWhileItWasToGoIsNotStartedAgain) {
  ScriptedRun run;
  run.until<command::Dispatch>();
  const command::Dispatch work = run.last<command::Dispatch>();
  run.on(event::Scaled{with(run, work.actor, true), {}});
  const Commands said = run.on(event::ActorDown{work.actor, "crashed"});
  EXPECT_EQ(find<command::Launch>(said), nullptr);
  EXPECT_EQ(find<command::Discard>(said), nullptr);
  ASSERT_NE(find<command::Retire>(said), nullptr) << "nothing of it is to stay";
  EXPECT_EQ(run.scheduler().load_of(work.actor).responses, 0);
}

TEST(Scale, WhatARunWasScaledToOutlivesItsCheckpoint) {
  ScriptedRun run;
  run.until<command::Dispatch>();
  const auto actors = with(run, run.other_rollout(), true);
  run.on(event::Scaled{actors, {}});
  const std::string snapshot = run.scheduler().snapshot();
  auto restored = Scheduler::restored(run.scheduler().config(), snapshot);
  ASSERT_TRUE(restored);
  const Commands said = restored->on(event::Resumed{0, 1}, run.now());
  for (const Command& c : said) {
    if (const auto* launch = std::get_if<command::Launch>(&c)) {
      EXPECT_NE(launch->actor, run.other_rollout());
    }
  }
  EXPECT_EQ(restored->fleet().rollouts().size(), 1U);
}

}  // namespace
}  // namespace temper::orchestrator::testing
