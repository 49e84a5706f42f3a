#include "orchestrator/metrics/run_metrics.hpp"

#include "orchestrator/metrics/metrics_line.hpp"
#include "orchestrator/metrics/summary.hpp"
#include "orchestrator/record/sentences.hpp"
#include "tests/support/scheduler_world.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace temper::orchestrator {
namespace {

using namespace std::chrono_literals;
using actors::RoleKind;

/// Two responses per group, one group per step. The test makes up the leases.
class Script {
 public:
  explicit Script(std::uint64_t bound = 2) {
    SchedulerConfig c;
    c.actors = {{"rollout-0", RoleKind::Rollout, {CardId(0)}, 4},
                {"reward-0", RoleKind::Reward, {CardId(1)}, 0},
                {"trainer-0", RoleKind::Trainer, {CardId(1)}, 0}};
    c.responses_per_group = 2;
    c.staleness_bound = bound;
    feed(event::Started{c});
  }
  void feed(Event e, Commands commands = {}) {
    now_ += 1s;
    metrics.feed({sequence++, now_, std::move(e), std::move(commands)});
  }
  void dispatch(std::uint64_t group, std::uint64_t version, std::optional<Draw> draw = {}) {
    feed(event::DeadlineReached{},
         {command::Dispatch{ActorId(0),
                            LeaseId(100 + group),
                            GroupId(group),
                            PolicyVersion(version),
                            {ResponseId(2 * group), ResponseId(2 * group + 1)},
                            {},
                            draw}});
  }
  /// A prompt of 3 tokens, a response of `tokens`.
  void generate(std::uint64_t group,
                std::uint64_t k,
                std::int64_t tokens,
                std::uint64_t version,
                actors::FinishReason finish = actors::FinishReason::End) {
    feed(event::Generated{ActorId(0),
                          {{LeaseId(100 + group),
                            ResponseId(2 * group + k),
                            Tokens(3),
                            Tokens(tokens),
                            {{PolicyVersion(version), Tokens(tokens)}},
                            finish}}});
  }
  void judge(std::uint64_t group, double first, double second) {
    const LeaseId lease(200 + group);
    feed(event::DeadlineReached{},
         {command::Judge{ActorId(1), lease, {ResponseId(2 * group), ResponseId(2 * group + 1)}}});
    event::Judged judged{ActorId(1), lease, {{first, false}, {second, false}}};
    judged.terms = terms;
    judged.usage = usage;
    feed(judged);
  }
  void train(std::uint64_t group, std::uint64_t v0, std::uint64_t step, double reward = 0) {
    const LeaseId lease(300 + group);
    command::Train train{ActorId(2), lease, {PolicyVersion(step), 2, {}}, {}};
    train.certificate.groups = {{GroupId(group), PolicyVersion(v0)}};
    feed(event::DeadlineReached{}, {train});
    event::Trained trained{ActorId(2), lease, PolicyVersion(step + 1), {GroupId(group)}, {}};
    trained.metrics.reward_mean = reward;
    feed(trained, {command::Release{GroupId(group), Outcome::Trained}});
  }
  void whole_group(std::uint64_t group, std::uint64_t v0, std::uint64_t step, double a, double b) {
    dispatch(group, v0);
    generate(group, 0, 10, v0);
    generate(group, 1, 20, v0);
    judge(group, a, b);
    train(group, v0, step, (a + b) / 2);
  }
  RunMetrics metrics;
  std::uint64_t sequence = 0;
  actors::TermRewards terms;  ///< Of each group that is judged.
  std::optional<actors::JudgeUsage> usage;

 private:
  Time now_{-1s};
};

TEST(RunMetrics, CountsPromptsAndResponsesOfTrainedGroups) {
  Script s;
  s.whole_group(0, 0, 0, 1, 0);
  // (3 + 10) + (3 + 20) = 36 trained; 30 generated
  EXPECT_EQ(s.metrics.tokens().generated, Tokens(30));
  EXPECT_EQ(s.metrics.tokens().trained, Tokens(36));
  EXPECT_EQ(s.metrics.wasted(), Tokens(0));
  EXPECT_EQ(s.metrics.lengths().quantile(0.5), 10);
  EXPECT_EQ(s.metrics.lengths().max(), 20);
}

std::map<std::string, double> figures(const RunMetrics& metrics) {
  return summarize(metrics, {}).last_step;
}

TEST(RunMetrics, ShowTheMeanOfEachTermOverTheResponsesToWhichItApplies) {
  Script s;
  s.terms = {{"right", {1, 0}}, {"brief", {0.25, std::numeric_limits<double>::quiet_NaN()}}};
  s.whole_group(0, 0, 0, 1, 0);
  EXPECT_EQ(figures(s.metrics).at("terms/right"), 0.5);
  EXPECT_EQ(figures(s.metrics).at("terms/brief"), 0.25);
  EXPECT_FALSE(figures(s.metrics).contains("judge/requests"));
}

TEST(RunMetrics, CountTheWorkOfJudgesByStepAndItsCostSoFar) {
  Script s;
  s.usage = actors::JudgeUsage{.requests = 3, .cached = 1, .input_tokens = 10, .cost = 0.25};
  s.whole_group(0, 0, 0, 1, 0);
  s.whole_group(1, 1, 1, 1, 0);
  EXPECT_EQ(figures(s.metrics).at("judge/requests"), 3);
  EXPECT_EQ(figures(s.metrics).at("judge/cached"), 1);
  EXPECT_EQ(figures(s.metrics).at("judge/cost"), 0.5);
  EXPECT_EQ(summarize(s.metrics, {}).judges->requests, 6U);
}

TEST(RunMetrics, TheKlIsAbsentWithoutAReference) {
  Script s;
  s.whole_group(0, 0, 0, 1, 0);
  EXPECT_FALSE(figures(s.metrics).contains("kl"));
  SchedulerConfig c = s.metrics.config();
  c.actors.push_back({"reference-0", RoleKind::Reference, {CardId(1)}, 0});
  s.feed(event::Started{c});
  s.whole_group(1, 1, 1, 1, 0);
  EXPECT_EQ(figures(s.metrics).at("kl"), 0);
}

TEST(RunMetrics, GroupsWithEqualRewardsAreNotEffective) {
  Script s;
  s.whole_group(0, 0, 0, 1, 0);
  s.whole_group(1, 1, 1, 1, 1);
  EXPECT_EQ(s.metrics.tokens().trained, Tokens(72));
  EXPECT_EQ(s.metrics.tokens().effective, Tokens(36));
}

TEST(RunMetrics, FiguresOfSourcesAreThoseOfTheBatchAndOfTheirLastDraws) {
  Script s;
  SchedulerConfig c = s.metrics.config();
  c.problems.sources = {{"a", "a", 10}, {"b", "b", 10}};
  s.feed(event::Started{c});
  s.dispatch(0, 0, Draw{1, 25, 3, 4});
  s.generate(0, 0, 10, 0);
  s.generate(0, 1, 20, 0);
  s.judge(0, 1, 0);
  s.train(0, 0, 0);
  const auto& sources = s.metrics.updates().back().batch.sources;
  ASSERT_EQ(sources.size(), 2U);
  std::map<std::string, double> figures;
  for_each_figure({s.metrics.updates().back(), 0, 0, {}, {}},
                  [&](std::string_view name, double value) {
                    if (name.starts_with("sources/"))
                      figures.emplace(name, value);
                  });
  EXPECT_EQ(figures,
            (std::map<std::string, double>{{"sources/epoch/a", 0},
                                           {"sources/groups/a", 0},
                                           {"sources/set_aside/a", 0},
                                           {"sources/epoch/b", 2},
                                           {"sources/groups/b", 1},
                                           {"sources/reward/b", 0.5},
                                           {"sources/set_aside/b", 4}}));
}

TEST(RunMetrics, FiguresOfSourcesAreOnTheLineOfTheirEvaluation) {
  MetricsLine line;
  line.evaluation.emplace().sources = {
      {.name = "a", .problems = 3, .passed = 1, .pass_1 = 1.0 / 3}};
  std::map<std::string, double> figures;
  for_each_figure(line, [&](std::string_view name, double value) {
    if (name.starts_with("sources/"))
      figures.emplace(name, value);
  });
  EXPECT_EQ(figures, (std::map<std::string, double>{{"sources/evaluation/a", 0.3333}}));
}

TEST(RunMetrics, FilteredGroupsAreWasteAndNeitherTrainedNorEffective) {
  Script s;
  s.whole_group(0, 0, 0, 1, 0);
  s.dispatch(1, 1);
  s.generate(1, 0, 10, 1);
  s.generate(1, 1, 20, 1);
  s.judge(1, 1, 1);
  s.feed(event::DeadlineReached{},
         {command::Release{GroupId(1), Outcome::Filtered, Reason{ReasonKind::EqualRewards}}});
  EXPECT_EQ(s.metrics.tokens().generated, Tokens(60));
  EXPECT_EQ(s.metrics.tokens().trained, Tokens(36));
  EXPECT_EQ(s.metrics.tokens().effective, Tokens(36));
  EXPECT_EQ(s.metrics.wasted(), Tokens(30));
  const Summary summary = summarize(s.metrics, {});
  EXPECT_EQ(summary.groups.filtered, 1U);
  EXPECT_EQ(summary.groups.trained, 1U);
  EXPECT_EQ(summary.tokens.effective, 36);
  EXPECT_DOUBLE_EQ(summary.tokens.effective_per_s, summary.tokens.trained_per_s);
}

TEST(RunMetrics, AgesAreTakenFromCertificatesOfCompletedUpdates) {
  Script s;
  s.whole_group(0, 0, 0, 1, 0);
  s.whole_group(1, 0, 1, 1, 0);
  s.whole_group(2, 0, 2, 1, 0);
  s.whole_group(3, 3, 3, 1, 0);
  const std::map<std::int64_t, std::uint64_t> expected{{0, 2}, {1, 1}, {2, 1}};
  EXPECT_EQ(s.metrics.staleness().counts(), expected);
  EXPECT_DOUBLE_EQ(s.metrics.staleness().mean(), 0.75);
  EXPECT_DOUBLE_EQ(s.metrics.token_staleness(), 0.75);  // all groups are of one size
  EXPECT_EQ(s.metrics.updates()[2].staleness_max, 2U);
}

TEST(RunMetrics, FailedResponsesAreNotTrainedAndTheirTokensAreWasted) {
  Script s;
  s.dispatch(0, 0);
  s.generate(0, 0, 10, 0);
  s.generate(0, 1, 20, 0, actors::FinishReason::Failed);
  s.judge(0, 1, 0);
  EXPECT_EQ(s.metrics.wasted(), Tokens(0)) << "it is still outstanding";
  s.train(0, 0, 0);
  EXPECT_EQ(s.metrics.tokens().trained, Tokens(13));
  EXPECT_EQ(s.metrics.tokens().effective, Tokens(0));
  EXPECT_EQ(s.metrics.wasted(), Tokens(20));
  EXPECT_EQ(s.metrics.responses_failed(), 1U);
}

TEST(RunMetrics, LengthsOfAllThatWereGeneratedToTheEndStandBesideThoseTrained) {
  Script s;
  s.whole_group(0, 0, 0, 1, 0);  // 10 and 20, trained
  s.dispatch(1, 1);
  s.generate(1, 0, 40, 1);
  s.generate(1, 1, 8, 1, actors::FinishReason::Interrupted);  // Never finished.
  s.feed(event::DeadlineReached{},
         {command::Release{GroupId(1), Outcome::Evicted, Reason{ReasonKind::TooOld}}});
  s.dispatch(2, 1);
  s.generate(2, 0, 50, 1, actors::FinishReason::Failed);
  EXPECT_DOUBLE_EQ(s.metrics.lengths().mean(), 15);
  EXPECT_EQ(s.metrics.generated_lengths().total(), 3U);
  EXPECT_DOUBLE_EQ(s.metrics.generated_lengths().mean(), 70.0 / 3);
  EXPECT_EQ(s.metrics.groups().evicted, 1U);
  EXPECT_EQ(s.metrics.wasted(), Tokens(48)) << "those of group 1; group 2 is outstanding";
}

TEST(RunMetrics, InterruptedPrefixesCountOnceAndLateResultsAreWaste) {
  Script s;
  s.dispatch(0, 0);
  s.generate(0, 0, 4, 0, actors::FinishReason::Interrupted);
  s.generate(0, 0, 7, 0);  // Its lease is no longer valid.
  EXPECT_EQ(s.metrics.tokens().generated, Tokens(11));
  EXPECT_EQ(s.metrics.wasted(), Tokens(7));
}

TEST(RunMetrics, AResumeTakesBackWhatWasTrainedSinceItsCheckpoint) {
  Script s;
  s.whole_group(0, 0, 0, 1, 0);
  const std::uint64_t checkpoint = s.sequence;
  s.feed(event::CheckpointSaved{PolicyVersion(1), ""});
  s.whole_group(1, 0, 1, 1, 0);
  EXPECT_EQ(s.metrics.updates().size(), 2U);
  s.feed(event::Resumed{checkpoint, 1});
  EXPECT_EQ(s.metrics.updates().size(), 1U);
  EXPECT_EQ(s.metrics.tokens().trained, Tokens(36));
  EXPECT_EQ(s.metrics.tokens().generated, Tokens(60));
  EXPECT_EQ(s.metrics.wasted(), Tokens(30));
  EXPECT_EQ(s.metrics.staleness().total(), 1U);
  s.feed(event::Resumed{0, 1});
  EXPECT_EQ(s.metrics.tokens().trained, Tokens(0));
  EXPECT_EQ(s.metrics.wasted(), Tokens(60));
}

TEST(RunMetrics, StartingIsTheTimeUntilWorkOfTheStartAndOfEachResume) {
  Script s;  // Records are one second apart.
  EXPECT_EQ(s.metrics.starting(), Duration{});
  s.feed(event::ActorReady{ActorId(0), std::nullopt});
  EXPECT_EQ(s.metrics.starting(), Duration(1s));
  const std::uint64_t checkpoint = s.sequence - 1;
  s.whole_group(0, 0, 0, 1, 0);
  EXPECT_EQ(s.metrics.starting(), Duration(2s));
  s.feed(event::Resumed{checkpoint, 0});
  s.feed(event::ActorReady{ActorId(0), std::nullopt});
  s.feed(event::Resumed{checkpoint, 0});
  s.feed(event::ActorReady{ActorId(0), std::nullopt});
  EXPECT_EQ(s.metrics.starting(), Duration(5s));
  s.train(0, 0, 0);
  EXPECT_EQ(s.metrics.starting(), Duration(6s)) << "a batch that was ready is work too";
  s.dispatch(1, 1);
  EXPECT_EQ(s.metrics.starting(), Duration(6s));
  EXPECT_EQ(summarize(s.metrics, {}).start_s, 6);
}

TEST(RunMetrics, AResumeSaysWhatIsOtherSinceThen) {
  Script s;
  s.feed(event::Resumed{0, 0, {}, {{"staleness.bound", "2", "4"}, {"steps", "60", "120"}}});
  ASSERT_EQ(s.metrics.restarts().size(), 1U);
  EXPECT_EQ(summarize(s.metrics, {"x", 7, 255}).restarts.at(0).reason,
            "resumed from a checkpoint, staleness.bound: 2 -> 4, steps: 60 -> 120");
}

TEST(RunMetrics, PublishLagIsFromTheUpdateToEachEngine) {
  Script s;
  s.whole_group(0, 0, 0, 1, 0);
  s.feed(event::WeightsCommitted{ActorId(0), PolicyVersion(1), ""});  // one second later
  s.feed(event::WeightsCommitted{ActorId(0), PolicyVersion(1), ""});
  EXPECT_EQ(s.metrics.publish_lag_max(), Duration(2s));
  EXPECT_EQ(s.metrics.publish_lag_mean(), Duration(1500ms));
}

TEST(RunMetrics, RestartsAndSwitchesAreNamed) {
  Script s;
  s.feed(event::ActorDown{ActorId(0), "killed"},
         {command::Launch{ActorId(0), reason_with(ReasonKind::WorkerLost, "killed")}});
  event::Switched switched{ActorId(0), actors::SwitchAction::FreeKv, {}, ""};
  switched.cost.duration = 30ms;
  switched.cost.device_before = Bytes(100);
  s.feed(switched);
  ASSERT_EQ(s.metrics.restarts().size(), 1U);
  EXPECT_EQ(s.metrics.restarts()[0].actor, "rollout-0");
  EXPECT_EQ(s.metrics.restarts()[0].reason, reason_with(ReasonKind::WorkerLost, "killed"));
  const SwitchTotals& t = s.metrics.switches().at(actors::SwitchAction::FreeKv);
  EXPECT_EQ(t.total, Duration(30ms));
  EXPECT_EQ(t.device_freed, Bytes(100));
}

TEST(RunMetrics, ARestartAfterAPauseCountsOnceAndALieAsOne) {
  Script s;
  s.feed(event::ActorDown{ActorId(0), "sent nonsense", true},
         {command::Discard{
             ActorId(0), reason_with(ReasonKind::ProtocolViolation, "sent nonsense"), Time(5s)}});
  s.feed(event::DeadlineReached{}, {command::Launch{ActorId(0)}});
  ASSERT_EQ(s.metrics.restarts().size(), 1U);
  EXPECT_EQ(s.metrics.restarts()[0].reason->kind, ReasonKind::ProtocolViolation);
  EXPECT_EQ(s.metrics.lies(), 1U);
  EXPECT_EQ(summarize(s.metrics, {"x", 7, 255}).lies, 1U);
}

TEST(RunMetrics, TheLastFailureIsTold) {
  Script s;
  s.feed(
      event::DeadlineReached{},
      {command::Release{GroupId(3), Outcome::Failed, reason_with(ReasonKind::NotJudged, "one")}});
  s.feed(
      event::DeadlineReached{},
      {command::Release{GroupId(4), Outcome::Failed, reason_with(ReasonKind::NotJudged, "two")}});
  s.feed(event::DeadlineReached{},
         {command::Release{GroupId(5), Outcome::Filtered, Reason{ReasonKind::EqualRewards}}});
  const std::string last = "group 4: " + sentence(reason_with(ReasonKind::NotJudged, "two"), {});
  EXPECT_EQ(s.metrics.last_failure(), last);
  EXPECT_EQ(summarize(s.metrics, {"x", 7, 255}).groups.last_failure, last);
}

TEST(Summary, RewardsAreMeansOverTheFirstTheLastAndTheBestUpdates) {
  Script s;
  for (std::uint64_t i = 0; i < 20; ++i) {
    s.whole_group(i, i, i, 0, i < 5 ? 0.2 : i < 10 ? 0.6 : i < 15 ? 1.6 : 1.2);
  }
  const Summary summary = summarize(s.metrics, {"x", 7, 255});
  EXPECT_DOUBLE_EQ(summary.reward.first.value(), 0.2);  // (5 * 0.1 + 5 * 0.3) / 10
  EXPECT_DOUBLE_EQ(summary.reward.last.value(), 0.7);   // (5 * 0.8 + 5 * 0.6) / 10
  EXPECT_DOUBLE_EQ(summary.reward.best.value(), 0.7);
  EXPECT_EQ(summary.log_hash, "00000000000000ff");
  EXPECT_EQ(summary.steps, 20U);
  EXPECT_FALSE(summary.ok);
}

/// A run in which actors die, hang and answer late: its figures agree with the auditor and the
/// queue, which count independently.
TEST(RunMetrics, RandomRunsAgreeWithTheAuditor) {
  double tails = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Random random(seed, "metrics");
    const SchedulerConfig config = testing::random_config(random);
    const testing::Chaos chaos{.crash = 0.02,
                               .trainer_crash = 0.02,
                               .hang = 0.01,
                               .late_result = 0.3,
                               .failed_sample = 0.1};
    testing::World world(config, chaos, seed);
    RunMetrics metrics;
    world.on_record = [&](const Record& record) {
      metrics.feed(record);
      ASSERT_GE(metrics.wasted(), Tokens(0));
      const QueueDepth q = metrics.queue();
      ASSERT_GE(std::min({q.generating, q.scoring, q.ready, q.training}), 0);
    };
    const testing::Played played = world.play();
    const Summary s = summarize(metrics, {});
    ASSERT_EQ(s.steps, played.audit.steps) << "seed " << seed;
    ASSERT_EQ(s.groups.trained, played.audit.groups_trained) << "seed " << seed;
    ASSERT_EQ(s.groups.failed, played.audit.groups_failed) << "seed " << seed;
    ASSERT_EQ(s.groups.filtered, played.audit.groups_filtered) << "seed " << seed;
    ASSERT_EQ(s.staleness.max, static_cast<std::int64_t>(played.audit.max_staleness));
    ASSERT_NEAR(s.staleness.mean, played.audit.mean_staleness, 1e-5);
    const QueueDepth q = metrics.queue();
    ASSERT_EQ(static_cast<std::uint64_t>(q.generating + q.scoring + q.ready + q.training),
              played.audit.groups_outstanding);
    ASSERT_EQ(s.ok, played.finish.ok);
    ASSERT_EQ(s.tail.s, seconds(played.audit.tail)) << "seed " << seed;
    ASSERT_LE(s.tail.waits_s + s.tail.decode_s, (s.tail.s + 1e-9) * static_cast<double>(s.cards));
    tails += s.tail.s;
    for (const CardSummary& card : s.utilization.per_card) {
      std::int64_t sum = 0;
      for (const auto& [state, ns] : card.states_ns)
        sum += ns;
      ASSERT_EQ(sum, s.utilization.wall_ns);
    }
  }
  EXPECT_GT(tails, 1);
}

}  // namespace
}  // namespace temper::orchestrator
