// RunState: the end of a run, groups that leave, and the questions that several parts ask.
#include "orchestrator/scheduler/state/run_state.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "tests/orchestrator/scheduler/run_state.hpp"

namespace temper::orchestrator::testing {
namespace {

using std::nullopt;

TEST(RunState, FinishesOnceForTheFirstReason) {
  RunState run = ready_run();
  run.finish(Ending::Failed,
             Reason{.kind = ReasonKind::TooManyLosses},
             Reason{.kind = ReasonKind::WorkerLost});
  run.finish(Ending::Complete);
  EXPECT_TRUE(run.finished);
  const auto end = only<command::Finish>(run);
  EXPECT_FALSE(end.ok);
  EXPECT_EQ(end.reason, Reason{.kind = ReasonKind::TooManyLosses});
  EXPECT_EQ(end.last, Reason{.kind = ReasonKind::WorkerLost});
}

TEST(RunState, SaysHowItEnds) {
  struct Case {
    Ending how;
    bool ok, stopped;
  };
  for (const Case& c : {Case{Ending::Complete, true, false},
                        Case{Ending::Failed, false, false},
                        Case{Ending::Stopped, false, true}}) {
    RunState run = ready_run();
    run.finish(c.how);
    EXPECT_EQ(only<command::Finish>(run).ok, c.ok);
    EXPECT_EQ(only<command::Finish>(run).stopped, c.stopped);
  }
}

TEST(RunState, CancelsWhatAReleasedGroupGeneratesBeforeItLeaves) {
  RunState run = ready_run();
  const GroupId group = add_group(run);
  const LeaseId lease = generate_on(run, group, kOther);
  run.saved.queue.commit(lease, response(run, group, 0), Field::Response);
  run.withdrawn = {response(run, group, 1), ResponseId(99)};
  run.release(group, Outcome::Failed, Reason{.kind = ReasonKind::NotGenerated});

  ASSERT_EQ(run.out.size(), 2U);
  const auto& cancel = std::get<command::Cancel>(run.out[0]);
  EXPECT_EQ(cancel.actor, kOther);
  EXPECT_EQ(cancel.response, response(run, group, 1));
  const auto& left = std::get<command::Release>(run.out[1]);
  EXPECT_EQ(left.group, group);
  EXPECT_EQ(left.outcome, Outcome::Failed);
  EXPECT_EQ(left.reason, Reason{.kind = ReasonKind::NotGenerated});
  EXPECT_EQ(run.withdrawn, std::set{ResponseId(99)});
  EXPECT_EQ(run.load_of(kOther).leases, 0);
  EXPECT_EQ(run.saved.queue.group(group), nullptr);
}

TEST(RunState, GetsTheCreditsOfAReleasedGroupBack) {
  RunState run = ready_run();
  for (int i = 0; i < 4; ++i)
    generating_group(run, kEngine);
  EXPECT_FALSE(run.saved.queue.has_credit());
  EXPECT_EQ(run.groups_to_admit(), 0U);
  run.release(GroupId(2), Outcome::Evicted);
  EXPECT_TRUE(run.saved.queue.has_credit());
  EXPECT_EQ(run.groups_to_admit(), 1U);
}

TEST(RunState, ReplacesAGroupThatWasGivenUpButNotOneThatWasTrained) {
  RunState run = ready_run();
  trainable_group(run);
  trainable_group(run);
  EXPECT_EQ(run.saved.outstanding.dispatched, 2U);
  run.release(GroupId(0), Outcome::Trained);
  EXPECT_EQ(run.saved.outstanding.dispatched, 2U);
  run.release(GroupId(1), Outcome::Filtered);
  EXPECT_EQ(run.saved.outstanding.dispatched, 1U);
  EXPECT_EQ(run.saved.outstanding.outstanding_groups(), 0U);
}

TEST(RunState, RemembersWhatItHasRequestedBack) {
  RunState run = ready_run();
  run.withdraw(kEngine, {ResponseId(3), ResponseId(5)});
  EXPECT_EQ(run.withdrawn, (std::set{ResponseId(3), ResponseId(5)}));
  EXPECT_EQ(only<command::Withdraw>(run).actor, kEngine);
  EXPECT_EQ(only<command::Withdraw>(run).responses, (std::vector{ResponseId(3), ResponseId(5)}));
}

TEST(RunState, AdmitsWhatTheBoundLeavesRoomForAndTheRunStillNeeds) {
  struct Case {
    std::uint64_t steps, trained;
    int outstanding;
    std::uint64_t needed, admitted;
  };
  // B = 2 and eta = 1: (eta + 1) B = 4 groups have room.
  for (const Case& c : {Case{8, 0, 0, 16, 4},
                        Case{8, 0, 3, 13, 1},
                        Case{8, 0, 4, 12, 0},
                        Case{1, 0, 0, 2, 2},
                        Case{1, 0, 1, 1, 1},
                        Case{1, 0, 2, 0, 0},
                        Case{2, 2, 1, 1, 1},
                        Case{2, 4, 0, 0, 0},
                        Case{2, 6, 0, 0, 0}}) {
    SchedulerConfig config = small_config();
    config.steps = c.steps;
    RunState run = ready_run(config);
    run.saved.progress.groups_trained = c.trained;
    for (int i = 0; i < c.outstanding; ++i)
      add_group(run);
    EXPECT_EQ(run.groups_still_needed(), c.needed) << c.steps << ' ' << c.trained;
    EXPECT_EQ(run.groups_to_admit(), c.admitted) << c.steps << ' ' << c.trained;
    EXPECT_EQ(run.wants_groups(), c.admitted > 0) << c.steps << ' ' << c.trained;
  }
}

TEST(RunState, WantsOneBatchPerVersionUnlessItDispatchesAhead) {
  SchedulerConfig config = small_config();
  config.stragglers.dispatch_ahead = false;
  RunState run = ready_run(config);
  add_group(run);
  EXPECT_TRUE(run.wants_groups());
  add_group(run);
  EXPECT_FALSE(run.wants_groups());
  run.config.stragglers.dispatch_ahead = true;
  EXPECT_TRUE(run.wants_groups());
  run.config.stragglers.dispatch_ahead = false;
  publish(run, 1);
  EXPECT_TRUE(run.wants_groups());
}

TEST(RunState, AsksTheStalenessRuleAboutThePublishedVersion) {
  SchedulerConfig config = small_config();
  config.staleness_rule = StalenessRuleKind::Wait;
  RunState run = ready_run(config);
  generating_group(run, kEngine);
  EXPECT_TRUE(run.can_admit());
  publish(run, 1);  // the group is as old as allowed, and still generates
  EXPECT_TRUE(run.wants_groups());
  EXPECT_FALSE(run.can_admit());
}

TEST(RunState, CountsAnEtaOfZeroForSync) {
  SchedulerConfig config = small_config();
  config.staleness_rule = StalenessRuleKind::Sync;
  config.staleness_bound = 3;
  EXPECT_EQ(ready_run(config).credits(), 4);  // one batch of two groups of two responses
  config.staleness_rule = StalenessRuleKind::Exact;
  EXPECT_EQ(ready_run(config).credits(), 16);
  config.staleness_rule = StalenessRuleKind::Aggregate;
  config.staleness_fraction = 0.5;
  EXPECT_EQ(ready_run(config).credits(), 18);  // (3.5 + 1) * 2 groups
}

TEST(RunState, WaitsUrgentlyForGroupsThatTheNextStepMustContain) {
  RunState run = ready_run();
  for (int i = 0; i < 2; ++i)
    generating_group(run, kEngine);
  EXPECT_EQ(run.urgent(), nullopt);  // two of them may wait until step 1
  generating_group(run, kEngine);    // of three, one must be in step 0
  EXPECT_EQ(run.urgent(), version(0));
  trainable_group(run);  // it is there; but now two of four must be
  EXPECT_EQ(run.urgent(), version(0));
  run.stop_requested = true;
  EXPECT_EQ(run.urgent(), nullopt);
  run.stop_requested = false;
  run.finished = true;
  EXPECT_EQ(run.urgent(), nullopt);
}

TEST(RunState, WaitsForNothingUrgentlyOnceTheStepHasWhatItNeeds) {
  RunState run = ready_run();
  for (int i = 0; i < 2; ++i)
    generating_group(run, kEngine);
  trainable_group(run);
  EXPECT_EQ(run.urgent(), nullopt);
}

TEST(RunState, DrainsAfterItsLastStepAndAfterAStopRequest) {
  RunState run = ready_run();
  EXPECT_FALSE(run.draining());
  publish(run, 7);
  EXPECT_FALSE(run.draining());
  publish(run, 8);
  EXPECT_TRUE(run.draining());
  publish(run, 0);
  run.stop_requested = true;
  EXPECT_TRUE(run.draining());
}

TEST(RunState, WaitsForScoresOnlyOfReferencesOnSharedCards) {
  for (const Shared shared : {Shared::Engines, Shared::EnginesAndReference}) {
    RunState run = ready_run(small_config(shared));
    EXPECT_FALSE(run.waits_for_scores());
    judged_group(run);
    EXPECT_EQ(run.waits_for_scores(), shared == Shared::EnginesAndReference);
    EXPECT_FALSE(run.scoring_makes_a_batch());
    judged_group(run);
    EXPECT_EQ(run.scoring_makes_a_batch(), shared == Shared::EnginesAndReference);
    EXPECT_EQ(run.select_batch(), nullopt);
  }
}

TEST(RunState, SelectsABatchOfTheOldestTrainableGroups) {
  RunState run = ready_run();
  publish(run, 1);
  trainable_group(run, 1);
  EXPECT_EQ(run.select_batch(), nullopt);
  trainable_group(run, 0);
  trainable_group(run, 1);
  EXPECT_EQ(run.select_batch(), (std::vector{GroupId(1), GroupId(0)}));
}

TEST(RunState, PreparesNoLessThanASixteenthOfABatch) {
  RunState run = ready_run();
  EXPECT_EQ(run.least_to_prepare(), 1);
  run.config.groups_per_update = 47;
  EXPECT_EQ(run.least_to_prepare(), 2);
}

// --- Evaluation

SchedulerConfig evaluated(Shared shared, std::uint64_t every) {
  SchedulerConfig c = small_config(shared);
  c.steps = 5;
  c.evaluation = {.every = every, .problems = 2, .samples = 2, .pass = 1, .checkpoint = true};
  return c;
}

TEST(RunState, EvaluatesTheFirstEveryNthAndTheLastVersion) {
  const auto due = [](std::uint64_t every) {
    const RunState run = ready_run(evaluated(Shared::Nothing, every));
    std::vector<std::uint64_t> versions;
    for (std::uint64_t v = 0; v <= run.config.steps; ++v) {
      if (run.evaluation_is_due_at(version(v)))
        versions.push_back(v);
    }
    return versions;
  };
  EXPECT_EQ(due(0), std::vector<std::uint64_t>{});
  EXPECT_EQ(due(1), (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(due(2), (std::vector<std::uint64_t>{0, 2, 4, 5}));
  EXPECT_EQ(due(9), (std::vector<std::uint64_t>{0, 5}));
}

void generate_all(Evaluation& evaluation) {
  DistQueue& table = evaluation.table();
  std::vector<ResponseId> responses;
  for (const ResponseId r : table.ready(Task::Generate))
    responses.push_back(r);
  const LeaseId lease = table.lease(Task::Generate, kEngine, responses, Time::max());
  for (const ResponseId r : responses) {
    table.commit(lease, r, Field::Response);
    evaluation.generated();
  }
}

TEST(RunState, HoldsUpTrainingForAnEvaluation) {
  struct Case {
    Shared shared;
    std::uint64_t every;
    bool generates, judges;  ///< Whether training waits meanwhile.
  };
  // Cards that are all shared are needed to generate; where the next version is evaluated as well,
  // it must not come before this one is done.
  for (const Case& c : {Case{Shared::Nothing, 2, false, false},
                        Case{Shared::Nothing, 1, true, true},
                        Case{Shared::OneEngine, 2, false, false},
                        Case{Shared::Engines, 2, true, false},
                        Case{Shared::Engines, 1, true, true}}) {
    RunState run = ready_run(evaluated(c.shared, c.every));
    EXPECT_FALSE(run.evaluation_holds_up_training());
    run.evaluation.begin(version(0), at(0));
    EXPECT_EQ(run.evaluation_holds_up_training(), c.generates) << int(c.shared) << ' ' << c.every;
    generate_all(run.evaluation);
    EXPECT_FALSE(run.evaluation_has_the_cards());
    EXPECT_EQ(run.evaluation_holds_up_training(), c.judges) << int(c.shared) << ' ' << c.every;
    run.evaluation.end();
    EXPECT_FALSE(run.evaluation_holds_up_training());
  }
}

TEST(RunState, FindsALeaseInTheTableThatGrantedItAndCountsBothAsLoad) {
  RunState run = ready_run(evaluated(Shared::Nothing, 2));
  generating_group(run, kEngine);
  run.evaluation.begin(version(0), at(0));
  DistQueue& table = run.evaluation.table();
  const LeaseId lease =
      table.lease(Task::Generate, kEngine, {ResponseId(2 * kFirstEvaluation)}, Time::max());
  EXPECT_TRUE(is_evaluation(lease));
  EXPECT_EQ(&run.table_of(lease), &table);
  EXPECT_EQ(&run.table_of(LeaseId(1)), &run.saved.queue);
  EXPECT_EQ(run.load_of(kEngine).leases, 2);
  EXPECT_EQ(run.load_of(kEngine).responses, 3);
  EXPECT_EQ(run.responses_in_flight(), 2);  // of training
}

TEST(Evaluation, BeginsWithEveryProblemAndNeverReusesALease) {
  Evaluation evaluation(EvaluationPlan{.every = 1, .problems = 3, .samples = 2});
  EXPECT_FALSE(evaluation.under_way());
  evaluation.begin(version(4), at(1));
  EXPECT_EQ(evaluation.version(), version(4));
  EXPECT_EQ(evaluation.table().groups().size(), 3U);
  EXPECT_TRUE(evaluation.wants_engine());
  generate_all(evaluation);
  EXPECT_FALSE(evaluation.generates());
  EXPECT_FALSE(evaluation.complete());
  const LeaseId granted = evaluation.table().next_lease();
  evaluation.begin(version(5), at(2));
  EXPECT_EQ(evaluation.table().next_lease(), granted);
  EXPECT_TRUE(evaluation.generates());
}

}  // namespace
}  // namespace temper::orchestrator::testing
