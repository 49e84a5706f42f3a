// Why each actor is idle, and that it is told once per kind of cause.
#include "orchestrator/scheduler/view/waits.hpp"
#include "tests/orchestrator/scheduler/run_state.hpp"

namespace temper::orchestrator::testing {
namespace {

using actors::CardState;
using actors::SwitchAction;
using K = WaitKind;

struct WaitingRun {
  explicit WaitingRun(const SchedulerConfig& config = small_config())
      : run(ready_run(config)), sharing(run) {}

  void report() {
    run.out.clear();
    report_waits(run, sharing);
  }
  /// What the actor was last said to wait for.
  command::Waiting wait(ActorId actor) {
    report();
    return run.fleet.state(actor).waiting;
  }
  ActorState& state(ActorId a) { return run.fleet.change(a); }

  RunState run;
  CardSharing sharing;
};

/// A state of the run, and what an actor waits for in it.
struct Wait {
  const char* what;
  ActorId actor;
  void (*set)(WaitingRun&);
  CardState state;
  WaitCause cause;
};

void expect_waits(const std::vector<Wait>& waits, Shared shared = Shared::Nothing) {
  for (const Wait& c : waits) {
    SchedulerConfig config = small_config(shared);
    config.evaluation = {.every = 0, .problems = 1, .samples = 1};
    WaitingRun w(config);
    c.set(w);
    const auto wait = w.wait(c.actor);
    EXPECT_EQ(wait.state, c.state) << c.what;
    EXPECT_EQ(wait.cause, c.cause) << c.what;
  }
}

TEST(ReportWaits, OfAnyActorThatIsNotAtWork) {
  using W = WaitingRun&;
  expect_waits({
      {"starts",
       kOther,
       [](W w) { w.state(kOther).life = Life::Launching; },
       CardState::Down,
       {K::Start}},
      {"pauses",
       kOther,
       [](W w) {
         w.state(kOther).life = Life::Waiting;
         w.state(kOther).launch_at = at(1);
       },
       CardState::Down,
       {K::RestartPause}},
      {"waits for a slot",
       kOther,
       [](W w) { w.state(kOther).life = Life::Waiting; },
       CardState::Down,
       {K::StartSlot}},
      {"was removed, and ends its work",
       kOther,
       [](W w) {
         w.run.config.actors[kOther.value()].away = true;
         w.run.fleet.take(w.run.config.actors);
       },
       CardState::Idle,
       {K::Removed}},
      {"was removed",
       kOther,
       [](W w) {
         w.run.config.actors[kOther.value()].away = true;
         w.run.fleet.take(w.run.config.actors);
         w.state(kOther).life = Life::Down;
       },
       CardState::Down,
       {K::Removed}},
      {"switches",
       kOther,
       [](W w) { w.state(kOther).switching = SwitchAction::AllocateKv; },
       CardState::Switch,
       {.kind = K::RoleSwitch, .action = SwitchAction::AllocateKv}},
  });
}

TEST(ReportWaits, OfATrainer) {
  using W = WaitingRun&;
  expect_waits({
      {"trains",
       kTrainer,
       [](W w) { w.run.trainer.training = LeaseId(1); },
       CardState::Idle,
       {K::Work}},
      {"computes gradients",
       kTrainer,
       [](W w) { w.run.trainer.preparing = LeaseId(1); },
       CardState::Idle,
       {K::Work}},
      {"saves",
       kTrainer,
       [](W w) { w.run.trainer.saving = at(60); },
       CardState::WeightSync,
       {K::Checkpoint}},
      {"has nothing left to do",
       kTrainer,
       [](W w) { w.run.stop_requested = true; },
       CardState::Idle,
       {K::EndOfRun}},
      {"waits for the last evaluation",
       kTrainer,
       [](W w) {
         w.run.evaluation.begin(version(0), at(0));
         w.run.stop_requested = true;
       },
       CardState::Idle,
       {K::Evaluation}},
      {"waits for an evaluation",
       kTrainer,
       [](W w) {
         w.run.config.evaluation.every = 1;
         w.run.evaluation.begin(version(0), at(0));
       },
       CardState::WaitData,
       {.kind = K::Evaluation, .version = version(0)}},
      {"waits for groups to be dispatched",
       kTrainer,
       [](W w) { trainable_group(w.run); },
       CardState::WaitData,
       {.kind = K::Dispatch, .ready = 1, .needed = 2}},
      {"waits for the oldest group that is not ready",
       kTrainer,
       [](W w) {
         trainable_group(w.run);
         judged_group(w.run);
         generating_group(w.run, kEngine);
       },
       CardState::WaitData,
       {.kind = K::Groups, .group = GroupId(1), .version = version(0), .ready = 1, .needed = 2}},
      {"waits for its cards",
       kTrainer,
       [](W w) {
         trainable_group(w.run);
         trainable_group(w.run);
       },
       CardState::WaitData,
       {.kind = K::RoleSwitch, .ready = 2, .needed = 2}},
  });
}

TEST(ReportWaits, OfAnEngine) {
  using W = WaitingRun&;
  expect_waits({
      {"generates",
       kEngine,
       [](W w) { generating_group(w.run, kEngine); },
       CardState::Idle,
       {K::Work}},
      {"is not needed any more",
       kEngine,
       [](W w) { w.run.saved.progress.groups_trained = 16; },
       CardState::Idle,
       {K::EndOfRun}},
      {"drains", kEngine, [](W w) { w.run.stop_requested = true; }, CardState::Idle, {K::EndOfRun}},
      {"has no weights",
       kEngine,
       [](W w) { w.state(kEngine).version.reset(); },
       CardState::WaitWeights,
       {K::Weights}},
      {"gets new ones",
       kEngine,
       [](W w) { w.state(kEngine).staging = version(1); },
       CardState::WaitWeights,
       {K::Weights}},
      {"is throttled by the bound", kEngine, [](W) {}, CardState::WaitQuota, {K::StalenessBound}},
      {"is held back",
       kEngine,
       [](W w) { w.run.held_until = at(9); },
       CardState::WaitQuota,
       {K::TrainerDemand}},
  });
}

TEST(ReportWaits, OfAnEngineWithOlderWeightsThanItsWorkNeeds) {
  using W = WaitingRun&;
  expect_waits({{"a group is admitted under the published version",
                 kEngine,
                 [](W w) { publish(w.run, 1); },
                 CardState::WaitWeights,
                 {K::Weights}}});
}

/// The last groups of the run are dispatched, and one of them has been handed back.
void return_the_last(WaitingRun& w) {
  w.run.saved.progress.groups_trained = 15;
  add_group(w.run);
}

TEST(ReportWaits, OfAnEngineOnTheTrainersCards) {
  using W = WaitingRun&;
  const WaitCause turn{.kind = K::RoleSwitch, .phase = SwitchPhase::Train};
  expect_waits({{"waits for its turn", kEngine, [](W) {}, CardState::Switch, turn},
                {"the last responses wait for its cards",
                 kEngine,
                 return_the_last,
                 CardState::Switch,
                 turn}},
               Shared::Engines);
}

TEST(ReportWaits, OfReferencesAndVerifiers) {
  using W = WaitingRun&;
  expect_waits({
      {"scores",
       kReference,
       [](W w) {
         const GroupId group = generated_group(w.run);
         w.run.saved.queue.lease(
             Task::Reference, kReference, w.run.saved.queue.live_responses(group), at(60));
       },
       CardState::Idle,
       {K::Work}},
      {"has nothing to score", kReference, [](W) {}, CardState::WaitData, {K::Responses}},
      {"judges",
       kReward,
       [](W w) {
         const GroupId group = generated_group(w.run);
         w.run.saved.queue.lease(
             Task::Reward, kReward, w.run.saved.queue.live_responses(group), at(60));
       },
       CardState::Idle,
       {K::Work}},
      {"has nothing to judge", kReward, [](W) {}, CardState::WaitData, {K::Responses}},
  });
  expect_waits({{"waits for its turn",
                 kReference,
                 [](W w) { generated_group(w.run); },
                 CardState::WaitData,
                 {K::SharedCards}}},
               Shared::EnginesAndReference);
}

TEST(ReportWaits, OfAReferenceNameWhatKeepsResponsesFromBeingGenerated) {
  using W = WaitingRun&;
  expect_waits({{"some are generated",
                 kReference,
                 [](W w) { generating_group(w.run, kEngine); },
                 CardState::WaitData,
                 {K::Responses}},
                {"the engines' cards are the trainer's",
                 kReference,
                 [](W) {},
                 CardState::WaitData,
                 {K::SharedCards}},
                {"the bound admits no group",
                 kReference,
                 [](W w) {
                   while (w.run.can_admit())
                     trainable_group(w.run);
                 },
                 CardState::WaitQuota,
                 {K::StalenessBound}},
                {"no group is needed any more",
                 kReference,
                 [](W w) { w.run.saved.progress.groups_trained = 16; },
                 CardState::Idle,
                 {K::EndOfRun}}},
               Shared::EnginesAndReference);
}

TEST(ReportWaits, OfAVerifierNameWhatKeepsResponsesFromBeingGenerated) {
  using W = WaitingRun&;
  expect_waits({{"some are generated",
                 kReward,
                 [](W w) { generating_group(w.run, kEngine); },
                 CardState::WaitData,
                 {K::Responses}},
                {"the bound admits no group",
                 kReward,
                 [](W w) {
                   while (w.run.can_admit())
                     trainable_group(w.run);
                 },
                 CardState::WaitQuota,
                 {K::StalenessBound}},
                {"a group is held back",
                 kReward,
                 [](W w) { w.run.held_until = at(9); },
                 CardState::WaitQuota,
                 {K::TrainerDemand}},
                {"the engines have old weights",
                 kReward,
                 [](W w) { publish(w.run, 1); },
                 CardState::WaitWeights,
                 {K::Weights}},
                {"an evaluation generates some",
                 kReward,
                 [](W w) {
                   w.run.saved.progress.groups_trained = 16;
                   w.run.evaluation.begin(version(0), at(0));
                 },
                 CardState::WaitData,
                 {K::Responses}},
                {"no group is needed any more",
                 kReward,
                 [](W w) { w.run.saved.progress.groups_trained = 16; },
                 CardState::Idle,
                 {K::EndOfRun}}});
  expect_waits({{"the engines' cards are the trainer's",
                 kReward,
                 [](W) {},
                 CardState::WaitData,
                 {K::SharedCards}},
                {"the last responses wait for the engines' cards",
                 kReward,
                 return_the_last,
                 CardState::WaitData,
                 {K::SharedCards}},
                {"the responses of an evaluation wait for them",
                 kReward,
                 [](W w) { w.run.evaluation.begin(version(0), at(0)); },
                 CardState::WaitData,
                 {K::SharedCards}}},
               Shared::EnginesAndReference);
}

TEST(ReportWaits, NameCardsWhileResponsesWaitForThemAndOthersAreGenerated) {
  for (const ActorId actor : {kReference, kReward}) {
    WaitingRun w(small_config(Shared::OneEngine));
    generating_group(w.run, kEngine);
    EXPECT_EQ(w.wait(actor).cause, (WaitCause{K::Responses}));
    add_group(w.run);  // Handed back by the engine whose cards the trainer has.
    EXPECT_EQ(w.wait(actor).cause, (WaitCause{K::SharedCards}));
  }
}

TEST(ReportWaits, OfATrainerWithACompleteBatchAreItsCards) {
  WaitingRun w(small_config(Shared::Engines));
  generating_group(w.run, kEngine);
  EXPECT_EQ(w.wait(kTrainer).cause.kind, K::Groups);
  trainable_group(w.run);
  trainable_group(w.run);
  EXPECT_EQ(w.wait(kTrainer).cause.kind, K::RoleSwitch);
}

// --- Once per kind

TEST(ReportWaits, OnceForEachActor) {
  WaitingRun w;
  w.report();
  EXPECT_EQ(emitted<command::Waiting>(w.run).size(), 5U);
  w.report();
  EXPECT_TRUE(w.run.out.empty());
}

TEST(ReportWaits, AgainOnlyWhereTheStateOrTheKindOfCauseChanges) {
  WaitingRun w;
  w.report();
  generating_group(w.run, kEngine);
  w.report();
  const auto changed = emitted<command::Waiting>(w.run);
  ASSERT_EQ(changed.size(), 2U);
  EXPECT_EQ(changed[0].actor, kTrainer);  // It waited for the dispatch.
  EXPECT_EQ(changed[0].cause.kind, K::Groups);
  EXPECT_EQ(changed[1], (command::Waiting{kEngine, CardState::Idle, {K::Work}}));
  generating_group(w.run, kEngine);
  w.report();
  EXPECT_TRUE(w.run.out.empty());
  w.run.held_until = at(9);
  w.report();
  EXPECT_EQ(only<command::Waiting>(w.run),
            (command::Waiting{kOther, CardState::WaitQuota, {K::TrainerDemand}}));
}

TEST(ReportWaits, OnceForAllStepsOfARoleSwitch) {
  WaitingRun w(small_config(Shared::Engines));
  w.report();
  EXPECT_EQ(w.state(kEngine).waiting.cause.phase, SwitchPhase::Train);
  w.state(kEngine).switching = SwitchAction::AllocateKv;
  w.report();
  EXPECT_TRUE(w.run.out.empty());
}

TEST(ReportWaits, NamesTheFirstGroupOfAWaitUntilTheTrainerHasWorked) {
  WaitingRun w;
  const GroupId first = generating_group(w.run, kEngine);
  EXPECT_EQ(w.wait(kTrainer).cause.group, first);
  w.run.release(first, Outcome::Failed);
  generating_group(w.run, kEngine);
  EXPECT_EQ(w.wait(kTrainer).cause.group, first);
  w.run.trainer.training = LeaseId(1);
  EXPECT_EQ(w.wait(kTrainer).cause.kind, K::Work);
  w.run.trainer.training.reset();
  EXPECT_EQ(w.wait(kTrainer).cause.group, GroupId(1));
}

TEST(ReportWaits, NothingOnceTheRunHasFinished) {
  WaitingRun w;
  w.run.finished = true;
  w.report();
  EXPECT_TRUE(w.run.out.empty());
}

}  // namespace
}  // namespace temper::orchestrator::testing
