// When a checkpoint is saved, and when the run ends.
#include "orchestrator/scheduler/training/checkpoints.hpp"

#include "tests/orchestrator/scheduler/run_state.hpp"

namespace temper::orchestrator::testing {
namespace {

using std::nullopt;

enum class Then { Nothing, Save, Complete, Stop, StopBeforeEvaluation };

Then what_happens(RunState& run) {
  run.out.clear();
  checkpoint_or_end(run);
  if (run.out.empty())
    return Then::Nothing;
  if (!emitted<command::SaveCheckpoint>(run).empty())
    return Then::Save;
  const auto end = only<command::Finish>(run);
  if (end.ok)
    return Then::Complete;
  EXPECT_TRUE(end.stopped);
  return end.reason->kind == ReasonKind::StopRequested ? Then::Stop : Then::StopBeforeEvaluation;
}

TEST(Checkpoints, AreSavedWhenDueAndThenTheRunEnds) {
  struct Case {
    std::uint64_t version, every;  ///< Of five steps; a checkpoint every so many.
    bool stop, saved;              ///< Stop was requested; this version is saved.
    Then then;
  };
  for (const Case& c : {Case{0, 1, false, false, Then::Nothing},  // nothing was trained
                        Case{1, 1, false, false, Then::Save},
                        Case{1, 1, false, true, Then::Nothing},
                        Case{1, 2, false, false, Then::Nothing},
                        Case{2, 2, false, false, Then::Save},
                        Case{2, 0, false, false, Then::Nothing},
                        Case{5, 0, false, false, Then::Save},  // the last one always
                        Case{5, 0, false, true, Then::Complete},
                        Case{5, 0, true, true, Then::Complete},  // it was done all the same
                        Case{0, 0, true, false, Then::Save},
                        Case{3, 0, true, false, Then::Save},
                        Case{3, 0, true, true, Then::Stop}}) {
    SchedulerConfig config = small_config();
    config.steps = 5;
    config.checkpoint_every = c.every;
    RunState run = ready_run(config);
    publish(run, c.version);
    run.stop_requested = c.stop;
    if (c.saved)
      run.trainer.saved = version(c.version);
    EXPECT_EQ(what_happens(run), c.then) << c.version << ' ' << c.every << ' ' << c.stop;
  }
}

TEST(Checkpoints, AreSavedOfEvaluatedVersionsAndTheRunEndsAfterItsLastEvaluation) {
  struct Case {
    std::uint64_t version;  ///< Of four steps; every second is evaluated.
    bool save_evaluated, stop, saved, evaluated;
    Then then;
  };
  for (const Case& c : {Case{2, true, false, false, false, Then::Save},
                        Case{2, true, false, true, false, Then::Nothing},
                        Case{2, false, false, false, false, Then::Nothing},
                        Case{3, true, false, false, false, Then::Nothing},
                        Case{4, false, false, false, false, Then::Save},
                        Case{4, true, false, true, false, Then::Nothing},  // is evaluated
                        Case{4, true, false, true, true, Then::Complete},
                        Case{4, true, true, true, false, Then::StopBeforeEvaluation}}) {
    SchedulerConfig config = small_config();
    config.steps = 4;
    config.evaluation = {.every = 2, .problems = 1, .samples = 1, .checkpoint = c.save_evaluated};
    RunState run = ready_run(config);
    publish(run, c.version);
    run.stop_requested = c.stop;
    if (c.saved)
      run.trainer.saved = version(c.version);
    if (c.evaluated)
      run.saved.evaluated = version(c.version);
    EXPECT_EQ(what_happens(run), c.then) << c.version << ' ' << c.saved << ' ' << c.evaluated;
  }
}

TEST(Checkpoints, WaitForATrainerThatDoesNothingElse) {
  using Change = void (*)(RunState&);
  for (const Change change :
       {Change([](RunState& run) { run.trainer.training = LeaseId(1); }),
        Change([](RunState& run) { run.trainer.preparing = LeaseId(1); }),
        Change([](RunState& run) { run.trainer.saving = at(1); }),
        Change([](RunState& run) { run.fleet.change(kTrainer).life = Life::Launching; }),
        Change([](RunState& run) {
          run.fleet.change(kTrainer).switching = actors::SwitchAction::OffloadOptimizer;
        }),
        Change([](RunState& run) { run.finished = true; })}) {
    RunState run = ready_run();
    publish(run, run.config.steps);
    change(run);
    EXPECT_EQ(what_happens(run), Then::Nothing);
  }
}

TEST(Checkpoints, HaveADeadlineAndAreRememberedOnceSaved) {
  RunState run = ready_run();
  run.now = at(5);
  publish(run, run.config.steps);
  checkpoint_or_end(run);
  EXPECT_EQ(only<command::SaveCheckpoint>(run).trainer, kTrainer);
  EXPECT_EQ(only<command::SaveCheckpoint>(run).version, version(8));
  EXPECT_EQ(run.trainer.saving, at(65));
  EXPECT_TRUE(on_saved(run, {version(8), ""}));
  EXPECT_EQ(run.trainer.saving, nullopt);
  EXPECT_EQ(run.trainer.saved, version(8));
  EXPECT_EQ(what_happens(run), Then::Complete);
}

TEST(Checkpoints, EndTheRunWhereTheyFail) {
  RunState run = ready_run();
  run.trainer.saving = at(60);
  EXPECT_FALSE(on_saved(run, {version(3), "disk full"}));
  const auto end = only<command::Finish>(run);
  EXPECT_FALSE(end.ok);
  EXPECT_EQ(end.reason->kind, ReasonKind::CheckpointFailed);
  EXPECT_EQ(end.reason->version, version(3));
  EXPECT_EQ(end.reason->detail, "disk full");
  EXPECT_EQ(run.trainer.saved, nullopt);
}

TEST(Checkpoints, GiveAStopRequestOneDeadline) {
  RunState run = ready_run();
  run.now = at(10);
  on_stop_requested(run);
  EXPECT_TRUE(run.stop_requested);
  EXPECT_EQ(run.drain_deadline, at(40));
  run.now = at(20);
  on_stop_requested(run);
  EXPECT_EQ(run.drain_deadline, at(40));
}

}  // namespace
}  // namespace temper::orchestrator::testing
