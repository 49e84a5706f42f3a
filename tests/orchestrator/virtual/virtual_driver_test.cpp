#include "orchestrator/virtual/virtual_driver.hpp"

#include "orchestrator/config/placement.hpp"
#include "orchestrator/config/simulation.hpp"
#include "orchestrator/metrics/recorder.hpp"
#include "orchestrator/record/audit.hpp"
#include "orchestrator/record/replay.hpp"
#include "orchestrator/virtual/in_process_host.hpp"
#include "tests/support/simulated_fakes.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using actors::RoleKind;
using testing::FakeActor;

PipelineConfig small() {
  PipelineConfig c;
  c.hardware = HardwareKind::Simulated;
  c.policy = actors::PolicyKind::Synthetic;
  c.steps = 6;
  c.algorithm.groups_per_update = 4;
  c.algorithm.responses_per_group = 4;
  c.staleness.bound = 1;
  c.placement.cards = 8;
  c.placement.rollout_cards = 6;
  c.rollout = {3, 16};
  set_simulated_defaults(c, [](const std::string&) { return false; });
  return c;
}

class VirtualRun : public ::testing::Test {
 protected:
  VirtualRun() {
    fs::path pattern = fs::temp_directory_path() / "temper-virtual-XXXXXX";
    std::string name = pattern.string();
    folder_ = ::mkdtemp(name.data());
  }
  ~VirtualRun() override { fs::remove_all(folder_); }

  /// Runs `config` on fakes; `spoil` may change one when it is made.
  RunOutcome run(const PipelineConfig& config,
                 const std::function<void(const std::string&, FakeActor&)>& spoil = nullptr) {
    VirtualOptions options;
    options.config = config;
    options.log = log(++runs_);
    options.stops = stops;
    std::vector<std::string> names;
    for (const ActorSpec& spec : actor_slots(config))
      names.push_back(spec.name);
    std::size_t made = 0;
    auto host = std::make_unique<InProcessHost>(
        names,
        [&,
         names](const actors::RoleConfig& role) -> Result<std::unique_ptr<actors::SimulatedActor>> {
          auto actor = std::make_unique<FakeActor>(role.kind);
          if (spoil)
            spoil(names[made], *actor);
          ++made;
          return std::unique_ptr<actors::SimulatedActor>(std::move(actor));
        });
    RunObserver observer;
    observer.on_record = [&](const Record& record) { metrics.feed(record); };
    const RealClock clock;
    auto driver = VirtualDriver::create(
        std::move(options), std::move(host), std::move(observer), Log::to_stderr(clock));
    EXPECT_TRUE(driver) << driver.error().context;
    return (*driver)->run();
  }
  fs::path log(int run) const { return folder_ / ("events-" + std::to_string(run)); }
  AuditReport audit(int run) const {
    Auditor auditor;
    EXPECT_TRUE(read_event_log(log(run), [&](const Record& r) {
      auditor.feed(r);
      return Status();
    }));
    return auditor.report();
  }

  int runs() const { return runs_; }

  std::function<int()> stops;
  RunMetrics metrics;

 private:
  fs::path folder_;
  int runs_ = 0;
};

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
  config.placement.lending = LendingPolicy::Always;
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
