#include "orchestrator/run/virtual/virtual_driver.hpp"

#include "orchestrator/record/replay.hpp"
#include "tests/support/virtual_run.hpp"

namespace temper::orchestrator {
namespace {

using testing::FakeActor;
using testing::small;
using testing::VirtualRun;

TEST_F(VirtualRun, MakesEveryUpdateWithinTheBound) {
  const RunOutcome outcome = run(small());
  EXPECT_TRUE(outcome.finish.ok) << outcome.finish.reason;
  const AuditReport report = audit(1);
  EXPECT_EQ(report.violations, std::vector<std::string>());
  EXPECT_EQ(report.steps, 6U);
  EXPECT_EQ(report.groups_trained, 24U);
  EXPECT_LE(report.max_staleness, 1U);
}

TEST_F(VirtualRun, TakesVirtualTimeOnly) {
  // 2 s of start, then six updates of 3 s each that cannot overlap, and generation before the
  // first.
  const RunOutcome outcome = run(small());
  EXPECT_GT(outcome.wall, Time(std::chrono::seconds(20)));
  EXPECT_LT(outcome.wall, Time(std::chrono::seconds(60)));
}

TEST_F(VirtualRun, LeavesTheSameLogEveryTime) {
  const std::uint64_t first = run(small()).log_hash;
  EXPECT_EQ(run(small()).log_hash, first);
  PipelineConfig other = small();
  other.staleness.bound = 2;
  EXPECT_NE(run(other).log_hash, first);
}

TEST_F(VirtualRun, ItsLogReplays) {
  run(small());
  Replay replay;
  const auto read = read_event_log(log(1), [&](const Record& r) { return replay.feed(r); });
  EXPECT_TRUE(read) << read.error().context;
  EXPECT_GT(replay.commands(), 100U);
}

TEST_F(VirtualRun, TheStatesOfEveryCardSumToTheWall) {
  const RunOutcome outcome = run(small());
  ASSERT_EQ(metrics.timeline().cards().size(), 8U);
  for (std::size_t card = 0; card < 8; ++card) {
    Duration sum{};
    for (const Duration d : metrics.timeline().totals(card, outcome.wall))
      sum += d;
    EXPECT_EQ(sum, outcome.wall.time_since_epoch());
  }
}

TEST_F(VirtualRun, ThatStandsStillEndsAndSaysWhoWaits) {
  const RunOutcome outcome = run(small(), [](const std::string& name, FakeActor& actor) {
    if (name == "reward-0")
      actor.swallow(1000);
  });
  EXPECT_FALSE(outcome.finish.ok);
  EXPECT_FALSE(outcome.finish.stopped);
  const std::string& reason = outcome.finish.reason;
  EXPECT_NE(reason.find("no actor has anything left to do"), std::string::npos) << reason;
  EXPECT_NE(reason.find("reward-0 owes"), std::string::npos) << reason;
  EXPECT_NE(reason.find("0 of the 4 groups of an update are ready"), std::string::npos) << reason;
  EXPECT_NE(reason.find("trainer wait-data"), std::string::npos) << reason;
}

TEST_F(VirtualRun, ADeadlineThatPassesEndsItByName) {
  PipelineConfig config = small();
  config.deadlines.train = std::chrono::seconds(1);
  const RunOutcome outcome = run(config);
  EXPECT_FALSE(outcome.finish.ok);
  EXPECT_NE(outcome.finish.reason.find("did not train"), std::string::npos)
      << outcome.finish.reason;
}

TEST_F(VirtualRun, AStopIsDrained) {
  int asked = 0;
  stops = [&] { return ++asked > 2 ? 1 : 0; };
  PipelineConfig config = small();
  config.steps = 1000;
  const RunOutcome outcome = run(config);
  EXPECT_TRUE(outcome.finish.stopped);
  EXPECT_EQ(outcome.finish.reason, "stopped on request");
  EXPECT_EQ(audit(1).violations, std::vector<std::string>());
}

TEST_F(VirtualRun, ASecondStopIsAtOnce) {
  int asked = 0;
  stops = [&] { return asked++ * 2; };
  PipelineConfig config = small();
  config.steps = 1000;
  config.deadlines.drain = std::chrono::hours(1);
  EXPECT_TRUE(run(config).finish.stopped);
}

TEST_F(VirtualRun, RolesTakeTurnsOnSharedCards) {
  for (const PlacementMode mode : {PlacementMode::Colocated, PlacementMode::Fused}) {
    for (const std::int32_t bound : {0, 2}) {
      PipelineConfig config = small();
      config.placement.mode = mode;
      config.placement.rollout_cards = 0;
      config.rollout.replicas = 2;
      config.staleness.bound = bound;
      const RunOutcome outcome = run(config);
      EXPECT_TRUE(outcome.finish.ok) << outcome.finish.reason;
      EXPECT_EQ(audit(runs()).violations, std::vector<std::string>());
    }
  }
}

TEST_F(VirtualRun, AFusedReferenceComesToItsCardsOncePerUpdate) {
  PipelineConfig config = small();
  config.placement.mode = PlacementMode::Fused;
  config.placement.rollout_cards = 0;
  config.rollout.replicas = 2;
  config.staleness.bound = 0;
  EXPECT_TRUE(run(config).finish.ok);
  const auto& switches = metrics.switches();
  EXPECT_EQ(switches.at(actors::SwitchAction::OnloadReference).count, config.steps);
  EXPECT_EQ(switches.at(actors::SwitchAction::OffloadReference).count, config.steps);
}

TEST_F(VirtualRun, AWaitingTrainerLendsItsCardsToTheRollout) {
  PipelineConfig config = small();
  config.placement.mode = PlacementMode::Hybrid;
  config.placement.lending = LendingRule::Always;
  const RunOutcome outcome = run(config);
  EXPECT_TRUE(outcome.finish.ok) << outcome.finish.reason;
  EXPECT_EQ(audit(1).violations, std::vector<std::string>());
  const auto& switches = metrics.switches();
  EXPECT_GT(switches.at(actors::SwitchAction::OffloadOptimizer).count, 0U);
  EXPECT_EQ(switches.at(actors::SwitchAction::OffloadOptimizer).count,
            switches.at(actors::SwitchAction::OnloadOptimizer).count);
}

}  // namespace
}  // namespace temper::orchestrator
