// A run whose processes fail by plan is predicted from its own times. The "measured" run here is
// one in virtual time, so that the expected result is known exactly.
#include "study/faults/fault_prediction.hpp"

#include "core/files.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/run/fault_plan.hpp"
#include "orchestrator/run/virtual/in_process_host.hpp"
#include "orchestrator/run/virtual/virtual_driver.hpp"
#include "study/faults/timed_actor.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace temper::study {
namespace {

using actors::RoleKind;
using orchestrator::PipelineConfig;

RunTimes known_times() {
  RunTimes t;
  t.start = {{RoleKind::Rollout, 0.5}, {RoleKind::Reward, 0.25}, {RoleKind::Trainer, 1.0}};
  t.response = {{RoleKind::Rollout, 0.01}, {RoleKind::Reward, 0.001}};
  t.update = 0.2;
  t.save = 0.05;
  t.stage = 0.01;
  t.commit = 0.001;
  t.prompt_tokens = 8;
  t.response_tokens = 16;
  return t;
}

class FaultPredictions : public ::testing::Test {
 protected:
  FaultPredictions() {
    config_.policy = actors::PolicyKind::Synthetic;
    config_.steps = 60;
    config_.algorithm.groups_per_update = 4;
    config_.algorithm.responses_per_group = 4;
    config_.reference.replicas = 0;
    config_.checkpoint.every = 5;
    config_.simulation.faults.repair = Duration(0);
    config_.simulation.faults.replacement = Duration(0);
    config_.simulation.faults.link_repair = std::chrono::seconds(1);
  }

  /// Writes the run folder, like `temper run --faults`.
  void run(const std::string& plan) {
    config_.simulation.faults.trace = (folder_ / "plan.csv").string();
    ASSERT_TRUE(write_file_atomically(config_.simulation.faults.trace, plan));
    ASSERT_TRUE(write_file_atomically(folder_ / "config.yaml", to_yaml(config_)));
    orchestrator::VirtualOptions options;
    options.pipeline = orchestrator::resolve_cards(config_);
    options.log = folder_ / "events.log";
    std::vector<std::string> names;
    for (const orchestrator::ActorSpec& spec : options.pipeline.slots)
      names.push_back(spec.name);
    const auto times = std::make_shared<const RunTimes>(known_times());
    auto host = std::make_unique<orchestrator::InProcessHost>(
        names,
        [times](const actors::RoleConfig& role) -> Result<std::unique_ptr<actors::SimulatedActor>> {
          return std::unique_ptr<actors::SimulatedActor>(std::make_unique<TimedActor>(role, times));
        });
    const auto driver = orchestrator::VirtualDriver::create(
        std::move(options), std::move(host), {}, Log::discard());
    ASSERT_TRUE(driver) << driver.error().context;
    const auto outcome = (*driver)->run();
    ASSERT_TRUE(outcome.finish.ok) << outcome.finish.reason;
  }

  const test::TemporaryFolder folder_;
  PipelineConfig config_;
};

TEST_F(FaultPredictions, UsesTimesFromBeforeTheFirstFailure) {
  run("6.3,card,0\n8.1,card,1\n10,stop,0,0.5\n12.2,link,0\n13,slow,1,2,3\n");
  const auto played = predict_faults(folder_.path());
  ASSERT_TRUE(played) << played.error().context;
  EXPECT_EQ(played->planned, 5U);
  EXPECT_GT(played->measured.losses, 0U);
  EXPECT_EQ(played->measured.rollbacks, 1U);
  EXPECT_EQ(played->predicted.rollbacks, 1U);
  EXPECT_EQ(played->predicted.losses, played->measured.losses);
  EXPECT_EQ(played->predicted.updates, 60U);
  EXPECT_LT(played->measured.goodput(), 0.95);
  EXPECT_NEAR(played->predicted.goodput(), played->measured.goodput(), 0.02);
  EXPECT_NEAR(seconds(played->predicted.wall), seconds(played->measured.wall), 1.0);
}

/// An actor that hangs for less than the heartbeat timeout continues; otherwise it is replaced.
TEST_F(FaultPredictions, ReplacesAnActorThatHangsTooLong) {
  run("6,stop,0,1\n");
  EXPECT_EQ(predict_faults(folder_.path())->measured.losses, 0U);
  std::filesystem::remove(folder_ / "events.log");
  run("6,stop,0,100\n");
  const auto slots = orchestrator::resolve_cards(config_).slots;
  EXPECT_EQ(predict_faults(folder_.path())->measured.losses,
            orchestrator::on_cards(slots, {CardId(0)}).size());
}

TEST_F(FaultPredictions, NeedsAnUpdateBeforeTheFirstFailure) {
  run("0.4,card,0\n");
  const auto played = predict_faults(folder_.path());
  ASSERT_FALSE(played);
  EXPECT_NE(played.error().context.find("before the first failure"), std::string::npos);
}

}  // namespace
}  // namespace temper::study
