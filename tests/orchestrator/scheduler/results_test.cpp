// Results of engines, references and verifiers, and the groups that leave because of them.
#include "orchestrator/scheduler/results/results.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "tests/orchestrator/scheduler/run_state.hpp"

namespace temper::orchestrator::testing {
namespace {

using actors::FinishReason;
using std::nullopt;

struct ResultsRun {
  explicit ResultsRun(const SchedulerConfig& config = small_config())
      : run(ready_run(config)), sharing(run), dispatcher(run.config) {}

  Learners learners() { return {sharing, dispatcher, evaluations}; }

  /// The engine answers a response that it has under this lease.
  static event::Generated::Item item(LeaseId lease,
                                     ResponseId response,
                                     FinishReason finish = FinishReason::End,
                                     std::uint64_t v = 0) {
    return {lease, response, Tokens(5), Tokens(10), {{version(v), Tokens(10)}}, finish};
  }
  void generated(ActorId engine,
                 std::vector<event::Generated::Item> items,
                 const std::string& failure = {}) {
    on_generated(run, learners(), {engine, std::move(items), failure});
  }
  void judged(LeaseId lease, std::vector<event::Judged::Item> items, std::string failure = {}) {
    on_judged(run, learners(), {kReward, lease, std::move(items), std::move(failure)});
  }
  LeaseId lease(Task task, ActorId actor, GroupId group) {
    return run.saved.queue.lease(task, actor, run.saved.queue.live_responses(group), at(60));
  }
  const Row& row(ResponseId r) const { return *run.saved.queue.row(r); }

  RunState run;
  CardSharing sharing;
  Dispatcher dispatcher;
  Evaluations evaluations;
};

// --- Engines

TEST(Results, MakeAGeneratedResponseReadyToBeScoredAndJudged) {
  ResultsRun r;
  const GroupId group = add_group(r.run);
  const LeaseId lease = generate_on(r.run, group, kEngine);
  r.run.now = at(50);
  r.run.withdrawn = {ResponseId(0)};
  r.generated(kEngine, {ResultsRun::item(lease, ResponseId(0))});
  EXPECT_EQ(r.row(ResponseId(0)).tokens, Tokens(10));
  EXPECT_TRUE(r.run.saved.queue.ready(Task::Reference).contains(ResponseId(0)));
  EXPECT_TRUE(r.run.saved.queue.ready(Task::Reward).contains(ResponseId(0)));
  EXPECT_TRUE(r.run.withdrawn.empty());
  EXPECT_EQ(r.run.saved.queue.find(lease)->deadline, at(170));  // it shows progress
  EXPECT_EQ(r.run.load_of(kEngine).responses, 1);
}

TEST(Results, ReturnAnInterruptedResponseWithWhatItHas) {
  for (const bool cached : {false, true}) {
    ResultsRun r;
    const LeaseId lease = generate_on(r.run, add_group(r.run), kEngine);
    r.run.withdrawn = {ResponseId(1)};
    auto item = ResultsRun::item(lease, ResponseId(1), FinishReason::Interrupted);
    item.cached = cached;
    r.generated(kEngine, {item});
    EXPECT_TRUE(r.run.saved.queue.ready(Task::Generate).contains(ResponseId(1)));
    EXPECT_EQ(r.row(ResponseId(1)).tokens, Tokens(10));
    EXPECT_EQ(r.row(ResponseId(1)).cached_on, cached ? std::optional(kEngine) : nullopt);
    EXPECT_TRUE(r.run.withdrawn.empty());
  }
}

TEST(Results, CountAnAgeFromTheMeanVersionWhereThatIsTheRule) {
  for (const AgeRule rule : {AgeRule::FirstToken, AgeRule::TokenWeighted}) {
    SchedulerConfig config = small_config();
    config.age = rule;
    ResultsRun r(config);
    publish(r.run, 3);
    const GroupId group = add_group(r.run, 2);
    const LeaseId lease = generate_on(r.run, group, kEngine);
    r.generated(kEngine, {ResultsRun::item(lease, ResponseId(0), FinishReason::End, 3)});
    EXPECT_EQ(r.run.saved.queue.group(group)->age_from(), version(2));
    r.generated(kEngine, {ResultsRun::item(lease, ResponseId(1), FinishReason::End, 3)});
    const PolicyVersion age = rule == AgeRule::FirstToken ? version(2) : version(3);
    EXPECT_EQ(r.run.saved.queue.group(group)->age_from(), age);
    EXPECT_EQ(r.run.saved.outstanding.outstanding, (GroupsByVersion{{age, 1}}));
  }
}

TEST(Results, NeverCountAnAgeFromAnOlderVersionThanBefore) {
  SchedulerConfig config = small_config();
  config.age = AgeRule::TokenWeighted;
  ResultsRun r(config);
  publish(r.run, 3);
  const GroupId group = add_group(r.run, 1);
  const LeaseId lease = generate_on(r.run, group, kEngine);
  r.generated(kEngine, {ResultsRun::item(lease, ResponseId(0), FinishReason::End, 1)});
  r.generated(kEngine, {ResultsRun::item(lease, ResponseId(1), FinishReason::End, 3)});
  ASSERT_EQ(r.run.saved.queue.group(group)->age_from(), version(2));
  r.run.saved.queue.start_over(ResponseId(1));
  const LeaseId again = r.run.saved.queue.lease(Task::Generate, kEngine, {ResponseId(1)}, at(60));
  auto shorter = ResultsRun::item(again, ResponseId(1));
  shorter.tokens = Tokens(1);
  shorter.segments = {{version(3), Tokens(1)}};
  r.generated(kEngine, {shorter});  // The mean is (10 x 1 + 1 x 3) / 11.
  EXPECT_EQ(r.run.saved.queue.group(group)->age_from(), version(2));
  EXPECT_EQ(r.run.saved.outstanding.outstanding, (GroupsByVersion{{version(2), 1}}));
}

// --- Groups that fail

TEST(Results, KeepAGroupWithTwoLiveResponsesAndReleaseOneWithFewer) {
  SchedulerConfig config = small_config();
  config.responses_per_group = 4;
  ResultsRun r(config);
  const GroupId group = add_group(r.run);
  const LeaseId lease = generate_on(r.run, group, kEngine);
  for (std::uint64_t k = 0; k < 2; ++k) {
    r.generated(kEngine, {ResultsRun::item(lease, ResponseId(k), FinishReason::Failed)}, "first");
    EXPECT_NE(r.run.saved.queue.group(group), nullptr);
  }
  r.generated(kEngine, {ResultsRun::item(lease, ResponseId(2), FinishReason::Failed)}, "last");
  EXPECT_EQ(r.run.saved.queue.group(group), nullptr);
  Reason reason = reason_with(ReasonKind::NotGenerated, "last");
  reason.count = 1;
  reason.of = 4;
  EXPECT_EQ(only<command::Release>(r.run).outcome, Outcome::Failed);
  EXPECT_EQ(only<command::Release>(r.run).reason, reason);
  EXPECT_EQ(only<command::Cancel>(r.run).response, ResponseId(3));
  EXPECT_EQ(r.run.saved.progress.responses_failed, 3U);
  EXPECT_EQ(r.run.saved.progress.groups_failed, 1U);
  EXPECT_EQ(r.run.saved.failed_since_step, 1U);
  EXPECT_FALSE(r.run.finished);
}

TEST(Results, KeepAGroupOfOneResponseUntilThatFails) {
  SchedulerConfig config = small_config();
  config.responses_per_group = 1;
  ResultsRun r(config);
  const LeaseId lease = generate_on(r.run, add_group(r.run), kEngine);
  r.generated(kEngine, {ResultsRun::item(lease, ResponseId(0))});
  EXPECT_TRUE(r.run.out.empty());
  const LeaseId judging = r.lease(Task::Reward, kReward, GroupId(0));
  r.judged(judging, {{0, true}}, "no answer found");
  Reason reason = reason_with(ReasonKind::NotJudged, "no answer found");
  reason.of = 1;
  EXPECT_EQ(only<command::Release>(r.run).reason, reason);
}

TEST(Results, TellWhichTaskFailed) {
  ResultsRun r;
  const GroupId group = generated_group(r.run);
  const LeaseId lease = r.lease(Task::Reference, kReference, group);
  on_scored(r.run, r.learners(), {kReference, lease, {ResponseId(1)}, "NaN"});
  Reason reason = reason_with(ReasonKind::NotScored, "NaN");
  reason.count = 1;
  reason.of = 2;
  EXPECT_EQ(only<command::Release>(r.run).reason, reason);
}

TEST(Results, CountAResponseThatFailsTwiceOnce) {
  SchedulerConfig config = small_config();
  config.responses_per_group = 3;
  ResultsRun r(config);
  const GroupId group = generated_group(r.run);
  const LeaseId scoring = r.lease(Task::Reference, kReference, group);
  const LeaseId judging = r.lease(Task::Reward, kReward, group);
  on_scored(r.run, r.learners(), {kReference, scoring, {ResponseId(0)}, "NaN"});
  r.judged(judging, {{0, true}, {1}, {2}});
  EXPECT_EQ(r.run.saved.progress.responses_failed, 1U);
  EXPECT_TRUE(r.run.saved.queue.group(group)->trainable);
}

TEST(Results, EndTheRunOneGroupAfterTheLimit) {
  SchedulerConfig config = small_config();
  config.failed_groups_limit = 2;
  ResultsRun r(config);
  for (std::uint64_t g = 0; g < 3; ++g) {
    EXPECT_FALSE(r.run.finished);
    const LeaseId lease = generate_on(r.run, add_group(r.run), kEngine);
    r.generated(kEngine, {ResultsRun::item(lease, ResponseId(2 * g), FinishReason::Failed)}, "oom");
  }
  const auto end = only<command::Finish>(r.run);
  EXPECT_EQ(end.reason,
            (Reason{.kind = ReasonKind::TooManyFailedGroups, .group = GroupId(2), .count = 3}));
  EXPECT_EQ(end.last->kind, ReasonKind::NotGenerated);
  EXPECT_EQ(end.last->detail, "oom");
}

TEST(Results, ChangeNothingMoreOnceTheRunHasFinished) {
  SchedulerConfig config = small_config();
  config.failed_groups_limit = 1;
  ResultsRun r(config);
  r.run.saved.failed_since_step = 1;
  const LeaseId first = generate_on(r.run, add_group(r.run), kEngine);
  const LeaseId second = generate_on(r.run, add_group(r.run), kEngine);
  r.generated(kEngine,
              {ResultsRun::item(first, ResponseId(0), FinishReason::Failed),
               ResultsRun::item(second, ResponseId(2))});
  EXPECT_TRUE(r.run.finished);
  EXPECT_EQ(r.row(ResponseId(2)).tokens, Tokens(0));
}

// --- Groups that are filtered

SchedulerConfig filtering(double limit) {
  SchedulerConfig c = small_config();
  c.filter_equal_rewards = true;
  c.filter_limit = limit;
  return c;
}

TEST(Results, FilterGroupsOfEqualRewardsUpToTheLimit) {
  // One batch of two groups between two steps.
  ResultsRun r(filtering(1));
  for (int g = 0; g < 4; ++g) {
    const GroupId group = generated_group(r.run);
    const LeaseId lease = r.lease(Task::Reward, kReward, group);
    r.judged(lease,
             g == 1 ? std::vector<event::Judged::Item>{{0}, {1}}
                    : std::vector<event::Judged::Item>{{1}, {1}});
  }
  std::vector<GroupId> filtered;
  for (const auto& c : emitted<command::Release>(r.run)) {
    EXPECT_EQ(c.outcome, Outcome::Filtered);
    EXPECT_EQ(c.reason, Reason{.kind = ReasonKind::EqualRewards});
    filtered.push_back(c.group);
  }
  EXPECT_EQ(filtered, (std::vector{GroupId(0), GroupId(2)}));
  EXPECT_EQ(r.run.saved.progress.groups_filtered, 2U);
  EXPECT_EQ(r.run.saved.filtered_since_step, 2U);
  EXPECT_NE(r.run.saved.queue.group(GroupId(3)), nullptr);
}

TEST(Results, FilterNothingUnlessAskedForOrOfGroupsOfOne) {
  for (const std::int32_t per_group : {1, 2}) {
    SchedulerConfig config = filtering(1);
    config.filter_equal_rewards = per_group == 1;
    config.responses_per_group = per_group;
    ResultsRun r(config);
    const GroupId group = generated_group(r.run);
    const LeaseId lease = r.lease(Task::Reward, kReward, group);
    r.judged(lease,
             std::vector<event::Judged::Item>(static_cast<std::size_t>(per_group), {1, false}));
    EXPECT_TRUE(r.run.out.empty());
  }
}

TEST(Results, FilterAGroupWhoseOtherRewardsFailed) {
  SchedulerConfig config = filtering(1);
  config.responses_per_group = 3;
  ResultsRun r(config);
  const GroupId group = generated_group(r.run);
  const LeaseId lease = r.lease(Task::Reward, kReward, group);
  r.judged(lease, {{1}, {1}, {0, true}});
  EXPECT_EQ(only<command::Release>(r.run).outcome, Outcome::Filtered);
}

// --- Verifiers

TEST(Results, EndTheRunWhereAVerifierNeverWorked) {
  ResultsRun r;
  const GroupId group = generated_group(r.run);
  const LeaseId lease = r.lease(Task::Reward, kReward, group);
  on_judged(
      r.run, r.learners(), {kReward, lease, {{0, true}, {0, true}}, "connection refused", true});
  Reason reason = reason_with(ReasonKind::VerifierNeverWorked, "connection refused");
  reason.actor = kReward;
  EXPECT_EQ(only<command::Finish>(r.run).reason, reason);
}

TEST(Results, GoOnWhereAVerifierHasWorkedBefore) {
  ResultsRun r;
  r.judged(r.lease(Task::Reward, kReward, generated_group(r.run)), {{0}, {1}});
  EXPECT_TRUE(r.run.rewarded);
  const LeaseId lease = r.lease(Task::Reward, kReward, generated_group(r.run));
  on_judged(r.run, r.learners(), {kReward, lease, {{0, true}, {0, true}}, "refused", true});
  EXPECT_FALSE(r.run.finished);
  EXPECT_EQ(only<command::Release>(r.run).reason->kind, ReasonKind::NotJudged);
}

TEST(Results, TellDispatchHowLongAGroupTook) {
  // The latencies of a batch are known once its groups are trainable and a step has ended.
  SchedulerConfig config = small_config();
  config.groups_per_update = 1;
  config.admission = Admission::JustInTime;
  ResultsRun r(config);
  r.dispatcher.dispatch_new(r.run, r.sharing);
  const auto sent = emitted<command::Dispatch>(r.run).front();
  r.run.now = at(10);
  r.generated(
      sent.actor,
      {ResultsRun::item(sent.lease, ResponseId(0)), ResultsRun::item(sent.lease, ResponseId(1))});
  r.judged(r.lease(Task::Reward, kReward, GroupId(0)), {{0}, {1}});
  const LeaseId scoring = r.lease(Task::Reference, kReference, GroupId(0));
  on_scored(r.run, r.learners(), {kReference, scoring, {}, {}});
  r.dispatcher.step_begins(at(10));
  r.dispatcher.step_ends(at(110));
  r.run.release(GroupId(0), Outcome::Trained);
  publish(r.run, 1);
  give_version(r.run, kEngine, 1);
  r.run.now = at(110);
  r.run.out.clear();
  r.dispatcher.step_begins(at(110));
  r.dispatcher.dispatch_new(r.run, r.sharing);
  EXPECT_EQ(r.run.held_until, at(110 + 2 * 100 - 10));
}

// --- Late results

TEST(Results, OfRevokedLeasesAndOfOthersChangeNothing) {
  ResultsRun r;
  const GroupId first = add_group(r.run);
  const LeaseId generating = generate_on(r.run, first, kEngine);
  r.generated(kOther, {ResultsRun::item(generating, ResponseId(0))});
  r.run.saved.queue.revoke_all(kEngine);
  r.generated(kEngine,
              {ResultsRun::item(generating, ResponseId(0)),
               ResultsRun::item(generating, ResponseId(1), FinishReason::Failed)});
  const GroupId second = generated_group(r.run);
  const LeaseId scoring = r.lease(Task::Reference, kReference, second);
  const LeaseId judging = r.lease(Task::Reward, kReward, second);
  r.run.saved.queue.revoke_all(kReference);
  r.run.saved.queue.revoke_all(kReward);
  on_scored(r.run, r.learners(), {kReference, scoring, {ResponseId(2)}, "late"});
  r.judged(judging, {{0, true}, {1}}, "late");
  EXPECT_TRUE(r.run.out.empty());
  EXPECT_EQ(r.row(ResponseId(0)).tokens, Tokens(0));
  EXPECT_EQ(r.run.saved.progress.responses_failed, 0U);
  EXPECT_EQ(r.run.saved.queue.ready(Task::Generate).size(), 2U);
  EXPECT_EQ(r.run.saved.queue.ready(Task::Reference).size(), 2U);
  EXPECT_EQ(r.run.saved.queue.ready(Task::Reward).size(), 2U);
}

TEST(Results, OfAResponseThatWasGrantedAnewCountOnlyUnderTheNewLease) {
  ResultsRun r;
  const GroupId group = add_group(r.run);
  const LeaseId old = generate_on(r.run, group, kEngine);
  r.run.saved.queue.revoke_all(kEngine);
  const LeaseId granted = generate_on(r.run, group, kEngine);
  r.generated(kEngine, {ResultsRun::item(old, ResponseId(0))});
  EXPECT_EQ(r.row(ResponseId(0)).tokens, Tokens(0));
  r.generated(kEngine, {ResultsRun::item(granted, ResponseId(0))});
  EXPECT_EQ(r.row(ResponseId(0)).tokens, Tokens(10));
}

TEST(Results, OfAnEvaluationDoNotTouchTheTableOfTraining) {
  SchedulerConfig config = small_config();
  config.evaluation = {.every = 1, .problems = 1, .samples = 1};
  ResultsRun r(config);
  r.run.evaluation.begin(version(0), at(0));
  r.evaluations.dispatch(r.run, r.sharing);
  const auto sent = only<command::Dispatch>(r.run);
  r.generated(sent.actor, {ResultsRun::item(sent.lease, sent.responses[0])});
  EXPECT_FALSE(r.run.evaluation.generates());
  r.evaluations.judge(r.run, r.sharing);
  r.judged(only<command::Judge>(r.run).lease, {{1}});
  EXPECT_TRUE(r.run.evaluation.complete());
  EXPECT_TRUE(r.run.saved.queue.groups().empty());
}

// --- Age

TEST(Results, GiveUpGroupsThatAreTooOldForTheRule) {
  SchedulerConfig config = small_config();
  config.staleness_rule = StalenessRuleKind::Window;
  ResultsRun r(config);
  generating_group(r.run, kEngine, 0);
  generating_group(r.run, kOther, 0);
  publish(r.run, 1);
  evict(r.run);
  EXPECT_TRUE(r.run.out.empty());
  generating_group(r.run, kOther, 1);
  publish(r.run, 2);
  evict(r.run);
  const auto left = emitted<command::Release>(r.run);
  ASSERT_EQ(left.size(), 2U);
  for (const auto& c : left) {
    EXPECT_EQ(c.outcome, Outcome::Evicted);
    EXPECT_EQ(c.reason, Reason{.kind = ReasonKind::TooOld});
  }
  EXPECT_EQ(emitted<command::Cancel>(r.run).size(), 4U);
  EXPECT_EQ(r.run.saved.progress.groups_evicted, 2U);
  EXPECT_NE(r.run.saved.queue.group(GroupId(2)), nullptr);
}

}  // namespace
}  // namespace temper::orchestrator::testing
