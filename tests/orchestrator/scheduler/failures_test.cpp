// A run in which nothing succeeds ends, and says why.
#include "tests/support/scheduler_world.hpp"
#include "tests/support/scripted_run.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator::testing {
namespace {

/// No response can be generated.
constexpr Chaos kHopeless{.failed_sample = 1};

SchedulerConfig limited(std::uint64_t limit) {
  SchedulerConfig c = ScriptedRun::small_config();
  for (ActorSpec& actor : c.actors)
    actor.cards = {CardId(0)};
  c.groups_per_update = 2;
  c.failed_groups_limit = limit;
  return c;
}

TEST(Failures, ThatNeverEndEndTheRunOneGroupAfterTheLimit) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Played played = World(limited(16), kHopeless, seed).play();
    ASSERT_FALSE(played.stuck);
    EXPECT_FALSE(played.finish.ok);
    EXPECT_EQ(played.audit.groups_failed, 17U);
    EXPECT_EQ(played.audit.violations, std::vector<std::string>());
    ASSERT_TRUE(played.finish.reason && played.finish.last);
    EXPECT_EQ(played.finish.reason->kind, ReasonKind::TooManyFailedGroups);
    EXPECT_EQ(played.finish.reason->count, 17U);
    EXPECT_TRUE(played.finish.reason->group);
  }
}

TEST(Failures, WithoutALimitTheyNeverEnd) {
  EXPECT_TRUE(World(limited(0), kHopeless, 1).play(5000).stuck);
}

TEST(Failures, OfSomeGroupsDoNotEndARunThatMakesUpdates) {
  std::uint64_t failed = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SchedulerConfig config = limited(16);
    config.steps = 40;
    const Played played = World(config, {.failed_sample = 0.08}, seed).play();
    EXPECT_TRUE(played.finish.ok) << played.why();
    failed += played.audit.groups_failed;
  }
  EXPECT_GT(failed, 50U * 17U) << "more in all than may come in a row";
}

TEST(Failures, AreToldWithTheVerifiersLastWords) {
  SchedulerConfig config = limited(1);
  ScriptedRun run(config);
  for (int i = 0; i < 2; ++i) {
    run.until<command::Judge>();
    event::Judged judged = run.judged(run.last<command::Judge>());
    for (auto& item : judged.items)
      item.failed = true;
    judged.failure = "the verifier ended";
    run.on(judged);
  }
  ASSERT_TRUE(run.scheduler().finished());
  const Reason last = run.last<command::Finish>().last.value();
  EXPECT_EQ(last.kind, ReasonKind::NotJudged);
  EXPECT_EQ(last.of, 2U);
  EXPECT_LT(last.count, 2U);
  EXPECT_EQ(last.detail, "the verifier ended");
}

/// What the verifier of a run says that has never given a reward.
event::Judged given_up(ScriptedRun& run) {
  event::Judged judged = run.judged(run.last<command::Judge>());
  for (auto& item : judged.items)
    item.failed = true;
  judged.failure = "the reply has no reward";
  judged.gave_up = true;
  return judged;
}

TEST(Failures, OfAVerifierThatHasNeverGivenARewardEndTheRunAtOnce) {
  ScriptedRun run(limited(1000));
  run.until<command::Judge>();
  run.on(given_up(run));
  ASSERT_TRUE(run.scheduler().finished());
  const auto& finish = run.last<command::Finish>();
  EXPECT_FALSE(finish.ok);
  ASSERT_TRUE(finish.reason);
  EXPECT_EQ(finish.reason->kind, ReasonKind::VerifierNeverWorked);
  EXPECT_EQ(finish.reason->detail, "the reply has no reward");
}

TEST(Failures, OfAVerifierThatIsStartedAgainCountAsThoseOfAnyOther) {
  ScriptedRun run(limited(1000));
  run.until<command::Judge>();
  run.on(run.judged(run.last<command::Judge>()));  // a reward at last
  run.until<command::Judge>();
  run.on(given_up(run));
  EXPECT_FALSE(run.scheduler().finished());
  EXPECT_GE(run.scheduler().progress().groups_failed, 1U);
}

TEST(Failures, OfScoresCostTheirResponsesAndAreToldWithTheReason) {
  ScriptedRun run(limited(1));
  run.until<command::ScoreReference>();
  const auto scored = run.last<command::ScoreReference>();
  const GroupId group = run.scheduler().queue().group_of(scored.responses.front());
  run.on(event::ReferenceScored{
      scored.actor, scored.lease, {scored.responses.front()}, "reference-0: response 0: nan"});
  EXPECT_EQ(run.scheduler().progress().responses_failed, 1U);
  ASSERT_EQ(run.scheduler().progress().groups_failed, 1U) << "one of two is left";
  EXPECT_EQ(run.scheduler().queue().group(group), nullptr);
  const command::Release& release = run.last<command::Release>();
  EXPECT_EQ(release.outcome, Outcome::Failed);
  ASSERT_TRUE(release.reason);
  EXPECT_EQ(release.reason->kind, ReasonKind::NotScored);
  EXPECT_EQ(release.reason->detail, "reference-0: response 0: nan");
}

TEST(Failures, OfOneResponseCountOnce) {
  SchedulerConfig config = limited(100);
  config.responses_per_group = 4;
  ScriptedRun run(config);
  run.until<command::ScoreReference>();
  const auto scored = run.last<command::ScoreReference>();
  const auto judge = run.last<command::Judge>();
  event::Judged judged = run.judged(judge);
  judged.items.front().failed = true;
  ASSERT_EQ(scored.responses.front(), judge.responses.front());
  run.on(judged);
  run.on(event::ReferenceScored{scored.actor, scored.lease, {scored.responses.front()}, "nan"});
  EXPECT_EQ(run.scheduler().progress().responses_failed, 1U);
}

TEST(Failures, OfAnEngineAreToldWithItsWords) {
  ScriptedRun run(limited(1));
  run.until<command::Dispatch>();
  event::Generated generated = run.generated(run.last<command::Dispatch>());
  for (auto& item : generated.items) {
    item.tokens = Tokens(0);
    item.segments.clear();
    item.finish = actors::FinishReason::Failed;
  }
  generated.failure = "rollout-0: response 0: token 3: log-prob nan";
  run.on(generated);
  const command::Release& release = run.last<command::Release>();
  ASSERT_TRUE(release.reason);
  EXPECT_EQ(release.reason->kind, ReasonKind::NotGenerated);
  EXPECT_EQ(release.reason->detail, generated.failure);
}

TEST(Failures, CountAcrossACheckpoint) {
  ScriptedRun run(limited(100));
  run.until<command::Judge>();
  event::Judged judged = run.judged(run.last<command::Judge>());
  for (auto& item : judged.items)
    item.failed = true;
  run.on(judged);
  ASSERT_EQ(run.scheduler().progress().groups_failed, 1U);
  const auto restored = Scheduler::restored(limited(100), run.scheduler().snapshot());
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->snapshot(), run.scheduler().snapshot());
}

}  // namespace
}  // namespace temper::orchestrator::testing
