// Actors that are added to a run, or removed from it, while it continues.
#include "orchestrator/scheduler/lifecycle/scaling.hpp"

#include "orchestrator/scheduler/lifecycle/lifecycle.hpp"
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "tests/orchestrator/scheduler/run_state.hpp"

namespace temper::orchestrator::testing {
namespace {

enum class Second { Away, Present };

/// The second engine is in the run, or is not.
void scale(RunState& run, Second second) {
  run.out.clear();
  event::Scaled e{run.config.actors, {}};
  e.actors[kOther.value()].away = second == Second::Away;
  on_scaled(run, e);
}

TEST(Scaling, RequestsTheWorkOfARemovedEngineBackAndRetiresItOnceItHasNone) {
  RunState run = ready_run();
  const GroupId group = add_group(run);
  const LeaseId lease = generate_on(run, group, kOther);
  run.withdrawn = {response(run, group, 0)};  // requested before
  scale(run, Second::Away);
  EXPECT_EQ(run.fleet.rollouts(), std::vector{kEngine});
  EXPECT_EQ(only<command::Withdraw>(run).responses, std::vector{response(run, group, 1)});
  retire_removed(run);
  EXPECT_TRUE(emitted<command::Retire>(run).empty());
  for (const std::size_t k : {0U, 1U})
    run.saved.queue.give_back(lease, response(run, group, k));
  retire_removed(run);
  EXPECT_EQ(only<command::Retire>(run).actor, kOther);
  EXPECT_TRUE(run.fleet.state(kOther).retiring);
  run.out.clear();
  retire_removed(run);
  EXPECT_TRUE(run.out.empty());
}

TEST(Scaling, LetsARemovedEngineFinishItsEvaluationItsWeightsAndItsSwitch) {
  SchedulerConfig config = small_config();
  config.evaluation = {.every = 1, .problems = 1, .samples = 1};
  RunState run = ready_run(config);
  run.evaluation.begin(version(0), at(0));
  DistQueue& table = run.evaluation.table();
  const LeaseId lease = table.lease(Task::Generate, kOther, {ResponseId(kFirstEvaluation)}, at(60));
  ActorState& a = run.fleet.change(kOther);
  a.staging = version(1);
  a.staged = true;
  a.switching = actors::SwitchAction::AllocateKv;
  scale(run, Second::Away);
  EXPECT_TRUE(emitted<command::Withdraw>(run).empty());
  retire_removed(run);
  EXPECT_EQ(only<command::CommitWeights>(run).version, version(1));
  EXPECT_TRUE(a.committing);
  a.staging.reset();
  retire_removed(run);
  a.switching.reset();
  retire_removed(run);
  EXPECT_TRUE(emitted<command::Retire>(run).empty());
  table.commit(lease, ResponseId(kFirstEvaluation), Field::Response);
  retire_removed(run);
  EXPECT_EQ(only<command::Retire>(run).actor, kOther);
}

TEST(Scaling, EndsARemovedActorThatStartsAtOnceAndForgetsOneThatWaits) {
  for (const Life life : {Life::Launching, Life::Waiting}) {
    RunState run = ready_run();
    run.fleet.change(kOther).life = life;
    scale(run, Second::Away);
    EXPECT_EQ(emitted<command::Retire>(run).size(), life == Life::Launching ? 1U : 0U);
    EXPECT_EQ(run.fleet.state(kOther).life, Life::Down);
  }
}

TEST(Scaling, LaunchesAnActorThatIsAdded) {
  SchedulerConfig config = small_config();
  config.actors[kOther.value()].away = true;
  RunState run = ready_run(config);
  run.now = at(10);
  scale(run, Second::Present);
  EXPECT_EQ(run.fleet.rollouts(), (std::vector{kEngine, kOther}));
  EXPECT_TRUE(run.out.empty());
  Lifecycle().start_waiting(run);
  EXPECT_EQ(only<command::Launch>(run).actor, kOther);
}

TEST(Scaling, PutsANewSlotBehindTheOthers) {
  RunState run = ready_run();
  event::Scaled e{run.config.actors, {}};
  e.actors.push_back({"rollout-2", actors::RoleKind::Rollout, {}, 4, false});
  on_scaled(run, e);
  EXPECT_EQ(run.fleet.rollouts(), (std::vector{kEngine, kOther, ActorId(5)}));
  EXPECT_EQ(run.fleet.state(ActorId(5)).life, Life::Waiting);
  EXPECT_TRUE(run.fleet.state(kEngine).ready());
}

TEST(Scaling, KeepsAnActorThatIsBroughtBackBeforeItWasToldToEnd) {
  RunState run = ready_run();
  generating_group(run, kOther);
  scale(run, Second::Away);
  retire_removed(run);
  scale(run, Second::Present);
  EXPECT_TRUE(run.out.empty());
  EXPECT_TRUE(run.fleet.state(kOther).ready());
  EXPECT_EQ(run.load_of(kOther).responses, 2);
}

TEST(Scaling, StartsANewWorkerForOneThatIsBroughtBackAfterItWasToldToEnd) {
  RunState run = ready_run();
  run.fleet.change(kOther).restarts = 2;
  scale(run, Second::Away);
  retire_removed(run);
  ASSERT_TRUE(run.fleet.state(kOther).retiring);
  run.now = at(5);
  scale(run, Second::Present);
  const auto gone = only<command::Discard>(run);
  EXPECT_EQ(gone.actor, kOther);
  EXPECT_EQ(gone.reason, std::nullopt);
  EXPECT_EQ(gone.until, at(5));
  EXPECT_EQ(run.fleet.state(kOther).restarts, 0);
  Lifecycle().start_waiting(run);
  EXPECT_EQ(only<command::Launch>(run).actor, kOther);
}

TEST(Scaling, DoesNotStartARemovedActorAgainThatIsLost) {
  for (const bool told : {false, true}) {
    RunState run = ready_run();
    if (!told)
      generating_group(run, kOther);
    scale(run, Second::Away);
    retire_removed(run);
    run.out.clear();
    Lifecycle lifecycle;
    lifecycle.lose(run, kOther, Reason{.kind = ReasonKind::WorkerLost});
    EXPECT_EQ(emitted<command::Retire>(run).size(), told ? 0U : 1U);
    EXPECT_TRUE(emitted<command::Launch>(run).empty());
    EXPECT_EQ(run.fleet.state(kOther).life, Life::Down);
    EXPECT_EQ(run.saved.queue.ready(Task::Generate).size(), told ? 0U : 2U);
  }
}

}  // namespace
}  // namespace temper::orchestrator::testing
