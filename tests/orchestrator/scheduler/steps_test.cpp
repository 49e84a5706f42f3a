// The trainer's steps: what a batch holds, when it is trained, and gradients that are computed
// ahead of it.
#include "orchestrator/scheduler/training/steps.hpp"

#include "tests/orchestrator/scheduler/run_state.hpp"

#include <limits>

namespace temper::orchestrator::testing {
namespace {

using Entry = actors::Certificate::Entry;
using Groups = std::vector<GroupId>;
using Responses = std::vector<ResponseId>;

struct TrainedRun {
  explicit TrainedRun(const SchedulerConfig& config = small_config())
      : run(ready_run(config)), sharing(run) {}

  void train() {
    run.out.clear();
    orchestrator::train(run, sharing);
  }
  void prepare() {
    run.out.clear();
    orchestrator::prepare(run, sharing);
  }
  bool finish_step() {
    run.out.clear();
    return on_trained(run, {kTrainer, run.trainer.training.value(), {}, {}, {}});
  }

  RunState run;
  CardSharing sharing;
};

// --- Batches

TEST(Steps, TrainTheOldestGroupsUnderACertificate) {
  TrainedRun t;
  publish(t.run, 1);
  trainable_group(t.run, 1);
  trainable_group(t.run, 0);
  trainable_group(t.run, 1);
  t.run.now = at(7);
  t.train();
  const auto step = only<command::Train>(t.run);
  EXPECT_EQ(step.actor, kTrainer);
  EXPECT_EQ(step.certificate.step, version(1));
  EXPECT_EQ(step.certificate.bound, 1U);
  EXPECT_EQ(step.certificate.groups,
            (std::vector<Entry>{{GroupId(1), version(0), {}}, {GroupId(0), version(1), {}}}));
  EXPECT_EQ(step.responses,
            (Responses{ResponseId(2), ResponseId(3), ResponseId(0), ResponseId(1)}));
  EXPECT_EQ(t.run.trainer.training, step.lease);
  EXPECT_EQ(t.run.trainer.batch, (Groups{GroupId(1), GroupId(0)}));
  EXPECT_TRUE(t.run.saved.outstanding.updating);
  EXPECT_EQ(t.run.saved.outstanding.in_training,
            (GroupsByVersion{{version(0), 1}, {version(1), 1}}));
  EXPECT_EQ(t.run.saved.queue.find(step.lease)->deadline, at(307));
}

TEST(Steps, CertifyFromWhichVersionAnAgeIsCountedAndLeaveFailedResponsesOut) {
  TrainedRun t;
  publish(t.run, 2);
  const GroupId group = trainable_group(t.run, 1);
  t.run.saved.queue.fail(response(t.run, group, 0));
  t.run.saved.outstanding.recount(version(1), version(2));
  t.run.saved.queue.count_age(group, version(2));
  trainable_group(t.run, 2);
  t.train();
  const auto step = only<command::Train>(t.run);
  EXPECT_EQ(
      step.certificate.groups,
      (std::vector<Entry>{{GroupId(0), version(1), version(2)}, {GroupId(1), version(2), {}}}));
  EXPECT_EQ(step.responses, (Responses{ResponseId(1), ResponseId(2), ResponseId(3)}));
}

TEST(Steps, CertifyWhatTheRuleGuarantees) {
  struct Case {
    StalenessRuleKind rule;
    std::uint64_t bound;
  };
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  for (const Case& c : {Case{StalenessRuleKind::Exact, 3},
                        Case{StalenessRuleKind::Sync, 0},
                        Case{StalenessRuleKind::Window, 3},
                        Case{StalenessRuleKind::InOrder, 3},
                        Case{StalenessRuleKind::Drop, 2},
                        Case{StalenessRuleKind::Wait, kAny}}) {
    SchedulerConfig config = small_config();
    config.staleness_bound = 3;
    config.staleness_rule = c.rule;
    TrainedRun t(config);
    trainable_group(t.run);
    trainable_group(t.run);
    t.train();
    EXPECT_EQ(only<command::Train>(t.run).certificate.bound, c.bound) << int(c.rule);
  }
}

TEST(Steps, WaitForABatchATrainerAndItsCards) {
  using Change = void (*)(TrainedRun&);
  const std::vector<std::pair<const char*, Change>> changes = {
      {"the batch is not complete",
       [](TrainedRun& t) { t.run.release(GroupId(0), Outcome::Failed); }},
      {"a step is under way", [](TrainedRun& t) { t.run.trainer.training = LeaseId(1); }},
      {"gradients are computed", [](TrainedRun& t) { t.run.trainer.preparing = LeaseId(1); }},
      {"a checkpoint is saved", [](TrainedRun& t) { t.run.trainer.saving = at(60); }},
      {"the run drains", [](TrainedRun& t) { t.run.stop_requested = true; }},
      {"the run has finished", [](TrainedRun& t) { t.run.finished = true; }},
      {"the trainer starts",
       [](TrainedRun& t) { t.run.fleet.change(kTrainer).life = Life::Launching; }},
      {"the trainer switches",
       [](TrainedRun& t) {
         t.run.fleet.change(kTrainer).switching = actors::SwitchAction::OnloadOptimizer;
       }},
      {"an evaluation holds it up", [](TrainedRun& t) {
         t.run.config.evaluation.every = 1;
         t.run.evaluation.begin(version(0), at(0));
       }}};
  for (const auto& [why, change] : changes) {
    SchedulerConfig config = small_config();
    config.evaluation = {.every = 0, .problems = 1, .samples = 1};
    TrainedRun t(config);
    trainable_group(t.run);
    trainable_group(t.run);
    change(t);
    t.train();
    EXPECT_TRUE(emitted<command::Train>(t.run).empty()) << why;
  }
}

TEST(Steps, WaitForTheCardsThatOthersHave) {
  TrainedRun t(small_config(Shared::Engines));
  t.sharing.drive(t.run);  // to rollout
  trainable_group(t.run);
  trainable_group(t.run);
  t.train();
  EXPECT_TRUE(t.run.out.empty());
}

TEST(Steps, PublishTheNextVersionAndReleaseTheirGroups) {
  TrainedRun t;
  for (int i = 0; i < 3; ++i)
    trainable_group(t.run);
  t.run.saved.filtered_since_step = t.run.saved.failed_since_step = 5;
  t.train();
  const LeaseId lease = t.run.trainer.training.value();
  EXPECT_TRUE(t.finish_step());
  const auto left = emitted<command::Release>(t.run);
  ASSERT_EQ(left.size(), 2U);
  for (const auto& c : left) {
    EXPECT_EQ(c.outcome, Outcome::Trained);
    EXPECT_EQ(c.reason, std::nullopt);
  }
  EXPECT_EQ(t.run.saved.progress.version, version(1));
  EXPECT_EQ(t.run.saved.progress.groups_trained, 2U);
  EXPECT_EQ(t.run.saved.outstanding.step, version(1));
  EXPECT_FALSE(t.run.saved.outstanding.updating);
  EXPECT_EQ(t.run.saved.outstanding.outstanding_groups(), 1U);
  EXPECT_EQ(t.run.saved.filtered_since_step + t.run.saved.failed_since_step, 0U);
  EXPECT_EQ(t.run.trainer.training, std::nullopt);
  EXPECT_TRUE(t.run.trainer.batch.empty());
  EXPECT_EQ(t.run.load_of(kTrainer).leases, 0);
  EXPECT_FALSE(on_trained(t.run, {kTrainer, lease, {}, {}, {}}));  // said twice
  EXPECT_EQ(t.run.saved.progress.version, version(1));
}

// --- Tensors that are gone

TEST(Steps, ABatchThatLostTensorsIsTakenBackAndItsOtherGroupsStayReady) {
  TrainedRun t;
  publish(t.run, 1);
  trainable_group(t.run, 0);
  trainable_group(t.run, 1);
  t.train();
  const LeaseId lease = t.run.trainer.training.value();
  EXPECT_TRUE(on_tensors_lost(t.run, {lease, {ResponseId(1)}}));
  EXPECT_EQ(t.run.trainer.training, std::nullopt);
  EXPECT_TRUE(t.run.trainer.batch.empty());
  EXPECT_FALSE(t.run.saved.outstanding.updating);
  EXPECT_TRUE(t.run.saved.outstanding.in_training.empty());
  EXPECT_EQ(t.run.load_of(kTrainer).leases, 0);
  const DistQueue& queue = t.run.saved.queue;
  EXPECT_TRUE(queue.ready(Task::Generate).contains(ResponseId(1)));
  EXPECT_FALSE(queue.ready(Task::Generate).contains(ResponseId(0)));
  EXPECT_EQ(queue.group(GroupId(0))->dispatched, version(0)) << "its age counts as before";
  EXPECT_FALSE(queue.group(GroupId(0))->trainable);
  EXPECT_TRUE(queue.group(GroupId(1))->trainable);
  t.train();
  EXPECT_TRUE(t.run.out.empty()) << "the batch is not complete";
  EXPECT_FALSE(on_tensors_lost(t.run, {lease, {ResponseId(2)}})) << "nobody holds the lease";
  EXPECT_TRUE(queue.group(GroupId(1))->trainable);
}

TEST(Steps, NoResponseThatFailedOrIsLeasedStartsOver) {
  TrainedRun t;
  const GroupId group = trainable_group(t.run);
  trainable_group(t.run);
  t.run.saved.queue.fail(response(t.run, group, 0));
  t.train();
  start_over(t.run, {ResponseId(0), ResponseId(1), ResponseId(99)});
  EXPECT_TRUE(t.run.saved.queue.ready(Task::Generate).empty());
  EXPECT_TRUE(t.finish_step());
}

// --- Gradients computed ahead

SchedulerConfig preparing_config() {
  SchedulerConfig c = small_config();
  c.groups_per_update = 3;
  c.stragglers.prepare = true;
  return c;
}

TEST(Steps, PrepareGroupsThatAreThereButNotTheWholeBatch) {
  TrainedRun t(preparing_config());
  for (int i = 0; i < 3; ++i)
    trainable_group(t.run);
  t.run.now = at(7);
  t.prepare();
  const auto part = only<command::Prepare>(t.run);
  EXPECT_EQ(part.actor, kTrainer);
  EXPECT_EQ(part.step, version(0));
  EXPECT_EQ(part.responses,
            (Responses{ResponseId(0), ResponseId(1), ResponseId(2), ResponseId(3)}));
  EXPECT_EQ(t.run.trainer.preparing, part.lease);
  EXPECT_EQ(t.run.saved.outstanding.prepared, 2);
  EXPECT_EQ(t.run.saved.queue.find(part.lease)->deadline, at(307));
  t.prepare();
  EXPECT_TRUE(t.run.out.empty());  // one part at a time
}

TEST(Steps, KeepPreparedGroupsWithTheTrainerWithoutADeadline) {
  TrainedRun t(preparing_config());
  trainable_group(t.run);
  t.prepare();
  const LeaseId lease = t.run.trainer.preparing.value();
  on_prepared(t.run, {kTrainer, LeaseId(99)});
  EXPECT_EQ(t.run.trainer.preparing, lease);
  on_prepared(t.run, {kTrainer, lease});
  EXPECT_EQ(t.run.trainer.preparing, std::nullopt);
  EXPECT_EQ(t.run.trainer.prepared, std::vector{lease});
  EXPECT_EQ(t.run.saved.queue.find(lease)->deadline, Time::max());
}

TEST(Steps, TrainPreparedGroupsAndTheRestAsOneBatch) {
  TrainedRun t(preparing_config());
  publish(t.run, 1);
  trainable_group(t.run, 1);
  t.prepare();
  const LeaseId first = t.run.trainer.preparing.value();
  t.train();
  EXPECT_TRUE(t.run.out.empty());
  on_prepared(t.run, {kTrainer, first});
  trainable_group(t.run, 0);
  t.prepare();
  on_prepared(t.run, {kTrainer, t.run.trainer.preparing.value()});
  trainable_group(t.run, 1);
  t.prepare();
  EXPECT_TRUE(t.run.out.empty());  // one group is left for the step
  t.train();
  const auto step = only<command::Train>(t.run);
  EXPECT_EQ(step.certificate.groups,
            (std::vector<Entry>{{GroupId(1), version(0), {}},
                                {GroupId(0), version(1), {}},
                                {GroupId(2), version(1), {}}}));
  EXPECT_EQ(step.responses.size(), 6U);
  EXPECT_EQ(t.run.saved.queue.find(step.lease)->responses,
            (Responses{ResponseId(4), ResponseId(5)}));  // the step's own lease has the rest
  EXPECT_TRUE(t.finish_step());
  EXPECT_EQ(emitted<command::Release>(t.run).size(), 3U);
  EXPECT_TRUE(t.run.trainer.prepared.empty());
  EXPECT_EQ(t.run.load_of(kTrainer).leases, 0);
  EXPECT_EQ(t.run.saved.outstanding.prepared, 0);
}

TEST(Steps, APartThatLostTensorsIsNoLongerPromised) {
  TrainedRun t(preparing_config());
  trainable_group(t.run);
  t.prepare();
  const LeaseId first = t.run.trainer.preparing.value();
  on_prepared(t.run, {kTrainer, first});
  trainable_group(t.run);
  t.prepare();
  EXPECT_FALSE(on_tensors_lost(t.run, {t.run.trainer.preparing.value(), {ResponseId(3)}}))
      << "no step";
  EXPECT_EQ(t.run.trainer.preparing, std::nullopt);
  EXPECT_EQ(t.run.trainer.prepared, std::vector{first});
  EXPECT_EQ(t.run.saved.outstanding.prepared, 1);
  EXPECT_EQ(t.run.saved.outstanding.in_training, (GroupsByVersion{{version(0), 1}}));
  EXPECT_TRUE(t.run.saved.queue.ready(Task::Generate).contains(ResponseId(3)));
}

TEST(Steps, PrepareOnlyWhereThatIsAskedForAndTheTrainerKeepsItsCards) {
  using Change = void (*)(TrainedRun&);
  const std::vector<std::pair<const char*, Change>> changes = {
      {"not asked for", [](TrainedRun& t) { t.run.config.stragglers.prepare = false; }},
      {"a step is under way", [](TrainedRun& t) { t.run.trainer.training = LeaseId(1); }},
      {"a checkpoint is saved", [](TrainedRun& t) { t.run.trainer.saving = at(60); }},
      {"the run drains", [](TrainedRun& t) { t.run.stop_requested = true; }},
      {"the run has finished", [](TrainedRun& t) { t.run.finished = true; }},
      {"the trainer starts",
       [](TrainedRun& t) { t.run.fleet.change(kTrainer).life = Life::Launching; }},
      {"the part is too small", [](TrainedRun& t) { t.run.config.groups_per_update = 32; }}};
  for (const auto& [why, change] : changes) {
    TrainedRun t(preparing_config());
    trainable_group(t.run);
    change(t);
    t.prepare();
    EXPECT_TRUE(t.run.out.empty()) << why;
  }
  SchedulerConfig shared = small_config(Shared::Engines);
  shared.stragglers.prepare = true;
  TrainedRun t(shared);
  trainable_group(t.run);
  t.prepare();
  EXPECT_TRUE(t.run.out.empty());
}

}  // namespace
}  // namespace temper::orchestrator::testing
