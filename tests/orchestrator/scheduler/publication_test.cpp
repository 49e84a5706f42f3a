// Weights on their way to the engines.
#include "orchestrator/scheduler/training/publication.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "tests/orchestrator/scheduler/run_state.hpp"

#include <fmt/format.h>

namespace temper::orchestrator::testing {
namespace {

using actors::SwitchAction;
using Steps = std::vector<std::string>;

struct PublishedRun {
  explicit PublishedRun(const SchedulerConfig& config = small_config())
      : run(ready_run(config)), sharing(run) {}

  /// What is requested now: "rollout-0 stage 1".
  Steps publish_weights() {
    run.out.clear();
    orchestrator::publish_weights(run, sharing);
    Steps steps;
    const auto say = [&](ActorId actor, const std::string& what) {
      steps.push_back(fmt::format("{} {}", run.fleet.spec(actor).name, what));
    };
    for (const Command& command : run.out) {
      if (const auto* stage = std::get_if<command::StageWeights>(&command))
        say(stage->actor, fmt::format("stage {}", stage->version));
      if (const auto* commit = std::get_if<command::CommitWeights>(&command))
        say(commit->actor, fmt::format("commit {}", commit->version));
      if (const auto* change = std::get_if<command::Switch>(&command))
        say(change->actor, std::string(name_of(change->action)));
    }
    return steps;
  }
  ActorState& state(ActorId a) { return run.fleet.change(a); }
  std::optional<Reason> staged(ActorId a, std::uint64_t v, const std::string& error = {}) {
    return on_staged(run, {a, version(v), error});
  }
  std::optional<Reason> committed(ActorId a, std::uint64_t v, const std::string& error = {}) {
    return on_committed(run, {a, version(v), error});
  }

  RunState run;
  CardSharing sharing;
};

TEST(Publication, StagesCommitsAndThenAllocatesAKvCacheForEachEngineByItself) {
  PublishedRun p;
  p.state(kEngine).version.reset();
  p.state(kEngine).has_kv = false;
  publish(p.run, 1);
  p.run.now = at(5);
  EXPECT_EQ(p.publish_weights(), (Steps{"rollout-0 stage 1", "rollout-1 stage 1"}));
  EXPECT_EQ(p.state(kEngine).weights_deadline, at(65));
  EXPECT_EQ(p.publish_weights(), Steps{});
  EXPECT_EQ(p.staged(kEngine, 1), std::nullopt);
  p.run.now = at(9);
  EXPECT_EQ(p.publish_weights(), Steps{"rollout-0 commit 1"});
  EXPECT_EQ(p.state(kEngine).weights_deadline, at(69));
  EXPECT_EQ(p.publish_weights(), Steps{});
  EXPECT_EQ(p.committed(kEngine, 1), std::nullopt);
  EXPECT_EQ(p.state(kEngine).version, version(1));
  EXPECT_EQ(p.publish_weights(), Steps{"rollout-0 allocate_kv"});
  EXPECT_EQ(p.state(kEngine).switch_deadline, at(69));
  EXPECT_EQ(p.publish_weights(), Steps{});
  p.staged(kOther, 1);
  p.publish_weights();
  p.committed(kOther, 1);
  EXPECT_EQ(p.publish_weights(), Steps{});  // it has kept its KV cache
}

TEST(Publication, CommitsWhatIsStagedBeforeANewerVersion) {
  PublishedRun p;
  p.state(kOther).life = Life::Down;
  publish(p.run, 1);
  p.publish_weights();
  publish(p.run, 2);
  EXPECT_EQ(p.publish_weights(), Steps{});
  p.staged(kEngine, 1);
  EXPECT_EQ(p.publish_weights(), Steps{"rollout-0 commit 1"});
  p.committed(kEngine, 1);
  EXPECT_EQ(p.publish_weights(), Steps{"rollout-0 stage 2"});
}

TEST(Publication, WaitsForATrainerAndForEnginesThatAreReadyAndDoNotSwitch) {
  PublishedRun p;
  publish(p.run, 1);
  p.state(kTrainer).life = Life::Launching;
  EXPECT_EQ(p.publish_weights(), Steps{});
  p.state(kTrainer).life = Life::Ready;
  p.state(kEngine).life = Life::Launching;
  p.state(kOther).switching = SwitchAction::AllocateKv;
  EXPECT_EQ(p.publish_weights(), Steps{});
  p.run.finished = true;
  p.state(kEngine).life = Life::Ready;
  EXPECT_EQ(p.publish_weights(), Steps{});
}

TEST(Publication, CommitsInARoleSwitchOnlyOnceAllEnginesHaveStaged) {
  PublishedRun p(small_config(Shared::Engines));
  EXPECT_EQ(p.publish_weights(), Steps{});  // the cards are the trainer's
  p.sharing.drive(p.run);
  p.sharing.on_switched(p.run, {kTrainer, SwitchAction::OffloadOptimizer, {}, ""});
  p.sharing.drive(p.run);
  ASSERT_EQ(p.sharing.phase(), SwitchPhase::Reshard);
  EXPECT_EQ(p.publish_weights(), (Steps{"rollout-0 stage 0", "rollout-1 stage 0"}));
  p.staged(kEngine, 0);
  p.sharing.drive(p.run);
  EXPECT_EQ(p.publish_weights(), Steps{});
  p.staged(kOther, 0);
  p.sharing.drive(p.run);
  EXPECT_EQ(p.sharing.phase(), SwitchPhase::Bind);
  EXPECT_EQ(p.publish_weights(), (Steps{"rollout-0 commit 0", "rollout-1 commit 0"}));
  p.committed(kEngine, 0);
  p.sharing.drive(p.run);
  EXPECT_EQ(p.publish_weights(), Steps{});  // no KV cache before the version gate
  p.committed(kOther, 0);
  p.sharing.drive(p.run);
  EXPECT_EQ(p.publish_weights(), (Steps{"rollout-0 allocate_kv", "rollout-1 allocate_kv"}));
}

TEST(Publication, LeavesTheEvaluatedVersionOnAnEngineThatEvaluates) {
  SchedulerConfig config = small_config();
  config.evaluation = {.every = 1, .problems = 1, .samples = 1};
  PublishedRun p(config);
  p.run.evaluation.begin(version(0), at(0));
  p.run.evaluation.table().lease(Task::Generate, kEngine, {ResponseId(kFirstEvaluation)}, at(100));
  publish(p.run, 1);
  EXPECT_EQ(p.publish_weights(), Steps{"rollout-1 stage 1"});
}

// --- Failures

TEST(Publication, LosesAnEngineThatCannotStageThePublishedVersion) {
  PublishedRun p;
  publish(p.run, 1);
  p.publish_weights();
  EXPECT_EQ(p.staged(kEngine, 1, "checksum"),
            reason_with(ReasonKind::WeightsNotStaged, "checksum"));
  EXPECT_EQ(p.state(kEngine).staging, std::nullopt);
}

TEST(Publication, TriesANewerVersionWhereAnOlderOneCannotBeStaged) {
  PublishedRun p;
  p.state(kOther).life = Life::Down;
  publish(p.run, 1);
  p.publish_weights();
  publish(p.run, 2);
  EXPECT_EQ(p.staged(kEngine, 1, "it is gone"), std::nullopt);
  EXPECT_EQ(p.publish_weights(), Steps{"rollout-0 stage 2"});
}

TEST(Publication, RestartsAnEvaluationWhoseVersionCannotBeStaged) {
  SchedulerConfig config = small_config();
  config.evaluation = {.every = 1, .problems = 1, .samples = 1};
  PublishedRun p(config);
  p.run.evaluation.begin(version(0), at(0));
  p.state(kEngine).version.reset();
  publish(p.run, 1);
  ASSERT_EQ(p.publish_weights(), Steps{"rollout-0 stage 0"});
  EXPECT_EQ(p.staged(kEngine, 0, "it is gone"), std::nullopt);
  EXPECT_EQ(p.run.evaluation.version(), version(1));
}

TEST(Publication, LosesAnEngineThatRefusesToCommit) {
  PublishedRun p;
  publish(p.run, 1);
  p.publish_weights();
  p.staged(kEngine, 1);
  p.publish_weights();
  EXPECT_EQ(p.committed(kEngine, 1, "shape"), reason_with(ReasonKind::WeightsRefused, "shape"));
  EXPECT_EQ(p.state(kEngine).version, version(0));
}

TEST(Publication, IgnoresAnswersThatNobodyWaitsFor) {
  PublishedRun p;
  publish(p.run, 1);
  EXPECT_EQ(p.staged(kEngine, 1, "late"), std::nullopt);
  p.publish_weights();
  EXPECT_EQ(p.staged(kEngine, 2), std::nullopt);
  EXPECT_FALSE(p.state(kEngine).staged);
  EXPECT_EQ(p.committed(kEngine, 1), std::nullopt);  // it is not even staged
  EXPECT_EQ(p.state(kEngine).version, version(0));
  p.state(kEngine).life = Life::Launching;
  EXPECT_EQ(p.staged(kEngine, 1), std::nullopt);
  EXPECT_FALSE(p.state(kEngine).staged);
}

}  // namespace
}  // namespace temper::orchestrator::testing
