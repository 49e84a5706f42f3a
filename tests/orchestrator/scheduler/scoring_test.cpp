// Batches of responses for references and verifiers.
#include "orchestrator/scheduler/dispatch/scoring.hpp"

#include "tests/orchestrator/scheduler/run_state.hpp"

#include <map>

namespace temper::orchestrator::testing {
namespace {

using actors::RoleKind;

SchedulerConfig in_batches_of(std::int32_t score_batch) {
  SchedulerConfig c = small_config();
  c.groups_per_update = 8;
  c.score_batch = score_batch;
  c.stragglers.deadline_first = false;
  return c;
}

/// The sizes of the batches that leave now.
std::vector<std::size_t> sent(RunState& run, const CardSharing& sharing, Task task) {
  run.out.clear();
  score(run,
        sharing,
        task,
        task == Task::Reward ? RoleKind::Reward : RoleKind::Reference,
        std::chrono::seconds(60));
  std::vector<std::size_t> sizes;
  for (const auto& c : emitted<command::ScoreReference>(run))
    sizes.push_back(c.responses.size());
  for (const auto& c : emitted<command::Judge>(run))
    sizes.push_back(c.responses.size());
  return sizes;
}

using Sizes = std::vector<std::size_t>;

TEST(Scoring, SendsBatchesThatGrowWhileTheActorIsBusy) {
  RunState run = ready_run(in_batches_of(4));
  const CardSharing sharing(run);
  generated_group(run);
  EXPECT_EQ(sent(run, sharing, Task::Reference), Sizes{2});  // idle: what there is
  generated_group(run);
  EXPECT_EQ(sent(run, sharing, Task::Reference), Sizes{});  // busy: not before it is full
  generated_group(run);
  EXPECT_EQ(sent(run, sharing, Task::Reference), Sizes{4});
  generated_group(run);
  generated_group(run);
  EXPECT_EQ(sent(run, sharing, Task::Reference), Sizes{});  // one at work and one behind it
  const Load load = run.load_of(kReference);
  EXPECT_EQ(load.leases, 2);
  EXPECT_EQ(load.responses, 6);
}

TEST(Scoring, SendsTheOldestResponsesFirst) {
  RunState run = ready_run(in_batches_of(3));
  const CardSharing sharing(run);
  generated_group(run);
  generated_group(run);
  sent(run, sharing, Task::Reward);
  EXPECT_EQ(emitted<command::Judge>(run).front().responses,
            (std::vector{ResponseId(0), ResponseId(1), ResponseId(2)}));
}

TEST(Scoring, GivesAVerifierNoMoreThanItTakes) {
  SchedulerConfig config = in_batches_of(4);
  config.judge_batch = 3;
  RunState run = ready_run(config);
  const CardSharing sharing(run);
  for (int i = 0; i < 4; ++i)
    generated_group(run);
  EXPECT_EQ(sent(run, sharing, Task::Reward), (Sizes{3, 3}));
  EXPECT_EQ(sent(run, sharing, Task::Reference), (Sizes{4, 4}));
}

TEST(Scoring, SendsNothingToAnActorThatIsNotReadyOrInAFinishedRun) {
  RunState run = ready_run(in_batches_of(4));
  const CardSharing sharing(run);
  generated_group(run);
  run.finished = true;
  EXPECT_EQ(sent(run, sharing, Task::Reward), Sizes{});
  run.finished = false;
  run.fleet.change(kReward).life = Life::Launching;
  EXPECT_EQ(sent(run, sharing, Task::Reward), Sizes{});
}

TEST(Scoring, GivesAReferenceOnSharedCardsAllAtOnceInItsTurn) {
  SchedulerConfig config = small_config(Shared::EnginesAndReference);
  config.score_batch = 1;
  config.stragglers.deadline_first = false;
  RunState run = ready_run(config);
  CardSharing sharing(run);
  judged_group(run);
  judged_group(run);
  EXPECT_EQ(sent(run, sharing, Task::Reference), Sizes{});  // it is the trainer's turn
  sharing.drive(run);
  sharing.on_switched(run, {kTrainer, actors::SwitchAction::OffloadOptimizer, {}, ""});
  sharing.drive(run);
  sharing.call_references(run);
  sharing.on_switched(run, {kReference, actors::SwitchAction::OnloadReference, {}, ""});
  sharing.drive(run);
  ASSERT_EQ(sharing.phase(), SwitchPhase::Score);
  EXPECT_EQ(sent(run, sharing, Task::Reference), Sizes{4});
}

TEST(Scoring, SendsWhatTheTrainerWaitsForAlone) {
  struct Case {
    bool deadline_first, training;
    int urgent, others;
    Task task;
    std::size_t full;
  };
  // B = 2 groups of two responses and eta = 1; a batch is 16 responses. Groups of version 0 are
  // urgent at version 1; without any that is ready, batches have an eighth of their size.
  for (const Case& c : {Case{true, false, 1, 0, Task::Reference, 2},
                        Case{true, false, 1, 1, Task::Reference, 2},
                        Case{true, false, 0, 1, Task::Reference, 2},
                        Case{true, false, 2, 1, Task::Reference, 4},
                        Case{true, true, 1, 1, Task::Reference, 16},
                        Case{false, false, 1, 1, Task::Reference, 16},
                        Case{true, false, 1, 1, Task::Reward, 16}}) {
    SchedulerConfig config = small_config();
    config.score_batch = 16;
    config.stragglers.deadline_first = c.deadline_first;
    RunState run = ready_run(config);
    publish(run, 1);
    for (int i = 0; i < c.urgent; ++i)
      generated_group(run, 0);
    for (int i = c.urgent; i < 2; ++i)
      generating_group(run, kEngine, 0);
    for (int i = 0; i < c.others; ++i)
      generated_group(run, 1);
    if (c.training)
      run.trainer.training = LeaseId(1);
    EXPECT_EQ(full_batch(run, c.task), c.full) << c.urgent << ' ' << c.others << ' ' << c.training;
  }
}

/// Two teachers. The second has two references.
SchedulerConfig with_two_teachers() {
  SchedulerConfig c = in_batches_of(4);
  c.actors[kReference.value()].teacher = 0;
  c.actors.push_back({"reference-b-0", RoleKind::Reference, {}, 0});
  c.actors.push_back({"reference-b-1", RoleKind::Reference, {}, 0});
  c.actors[5].teacher = c.actors[6].teacher = 1;
  c.problems.sources = {{"a", "a", 1}, {"b", "b", 1}};
  c.problems.teachers = TeacherPlan{{"a", "b"}, {{0}, {1}}};
  return c;
}

/// The responses that each actor gets now.
std::map<ActorId, std::vector<ResponseId>> scored_by(RunState& run) {
  const CardSharing sharing(run);
  sent(run, sharing, Task::Reference);
  std::map<ActorId, std::vector<ResponseId>> out;
  for (const auto& c : emitted<command::ScoreReference>(run))
    out[c.actor].insert(out[c.actor].end(), c.responses.begin(), c.responses.end());
  return out;
}

/// A generated group whose problem is of this teacher.
GroupId group_of_teacher(RunState& run, std::uint32_t teacher) {
  const GroupId group(run.saved.next_group++);
  run.saved.queue.add_group(group, version(0), teacher);
  run.saved.outstanding.add(version(0));
  do_task(run, Task::Generate, Field::Response, kEngine, run.saved.queue.live_responses(group));
  return group;
}

TEST(Scoring, SendsAResponseOnlyToItsTeacher) {
  RunState run = ready_run(with_two_teachers());
  const auto of = [&](GroupId group) { return run.saved.queue.live_responses(group); };
  const GroupId a = group_of_teacher(run, 0), b = group_of_teacher(run, 1);
  const auto got = scored_by(run);
  EXPECT_EQ(got,
            (std::map<ActorId, std::vector<ResponseId>>{{kReference, of(a)}, {ActorId(5), of(b)}}));
  // Batches do not mix: two idle references of `b` get nothing of what is left of `a`.
  const GroupId more = group_of_teacher(run, 0);
  EXPECT_TRUE(scored_by(run).empty());
  const GroupId full = group_of_teacher(run, 0);
  const auto then = scored_by(run).at(kReference);
  EXPECT_EQ(then.size(), 4U);
  EXPECT_EQ(run.saved.queue.group_of(then.front()), more);
  EXPECT_EQ(run.saved.queue.group_of(then.back()), full);
}

TEST(Scoring, GoesOnForOneTeacherWhileAnotherIsLost) {
  RunState run = ready_run(with_two_teachers());
  run.fleet.change(kReference).life = Life::Launching;
  const GroupId a = group_of_teacher(run, 0), b = group_of_teacher(run, 1);
  const auto got = scored_by(run);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got.at(ActorId(5)), run.saved.queue.live_responses(b));
  // What the lost one has not scored waits for it.
  run.fleet.change(kReference).life = Life::Ready;
  EXPECT_EQ(scored_by(run).at(kReference), run.saved.queue.live_responses(a));
}

TEST(Scoring, GivesAnotherReferenceOfTheTeacherWhatALostOneHad) {
  RunState run = ready_run(with_two_teachers());
  const GroupId b = group_of_teacher(run, 1);
  EXPECT_TRUE(scored_by(run).contains(ActorId(5)));
  run.saved.queue.revoke_all(ActorId(5));
  run.fleet.change(ActorId(5)).life = Life::Launching;
  const auto got = scored_by(run);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got.at(ActorId(6)), run.saved.queue.live_responses(b));
}

TEST(Scoring, SendsFullBatchesWhereNoStepWaits) {
  SchedulerConfig config = small_config();
  config.score_batch = 16;
  RunState run = ready_run(config);
  generated_group(run);
  EXPECT_EQ(full_batch(run, Task::Reference), 16U);
}

}  // namespace
}  // namespace temper::orchestrator::testing
