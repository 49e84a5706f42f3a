// The auditor, on a log with actors that its run does not have.
#include "orchestrator/record/audit.hpp"

#include "orchestrator/scheduler/queue/response_ids.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

SchedulerConfig colocated() {
  SchedulerConfig config;
  config.actors = {{"rollout-0", actors::RoleKind::Rollout, {CardId(0)}, 4},
                   {"reward-0", actors::RoleKind::Reward, {}, 0},
                   {"trainer", actors::RoleKind::Trainer, {CardId(0)}, 0}};
  config.actors[0].takes_turns = true;
  return config;
}

/// Its violations for commands that follow a start.
std::vector<std::string> violations_of(const Commands& commands) {
  Auditor auditor;
  auditor.feed({0, Time(), event::Started{colocated()}, commands});
  return auditor.report().violations;
}

bool any_says(const std::vector<std::string>& violations, std::string_view what) {
  return std::ranges::any_of(
      violations, [&](const std::string& v) { return v.find(what) != std::string::npos; });
}

constexpr ActorId kEngine(0), kNobody(7);

TEST(Auditor, TreatsCardsOfUnknownActorsAsExclusive) {
  const auto says = [](ActorId of) {
    return any_says(
        violations_of({command::Switch{ActorId(2), actors::SwitchAction::OnloadOptimizer, {of}}}),
        "are exclusive, but are given to others");
  };
  EXPECT_TRUE(says(kNobody));
  EXPECT_FALSE(says(kEngine));
}

TEST(Auditor, ReportsWorkForUnknownActors) {
  EXPECT_TRUE(
      any_says(violations_of({command::Dispatch{
                   kNobody, LeaseId(1), GroupId(0), PolicyVersion(0), {ResponseId(0)}, {}}}),
               "under a version its engine does not hold"));
  EXPECT_FALSE(
      violations_of({command::ScoreReference{kNobody, LeaseId(1), {ResponseId(0)}}}).empty());
}

/// The engine starts beside the optimizer: only a time-shared one must not have its cache then.
TEST(Auditor, ChecksTimeSharingOnlyForTimeSharedActors) {
  const auto says = [](ActorId of) {
    return any_says(violations_of({command::Switch{of, actors::SwitchAction::AllocateKv, {}}}),
                    "a KV cache is allocated beside the optimizer");
  };
  EXPECT_TRUE(says(kEngine));
  EXPECT_FALSE(says(kNobody));
}

/// As for the scheduler and the trainers, a finished response has a token.
TEST(Auditor, ReportsAResponseWithoutTokens) {
  using actors::FinishReason;
  const ResponseId first = ResponseIds(colocated().responses_per_group).at(GroupId(0), 0);
  const auto says = [&](FinishReason finish, std::int64_t tokens) {
    std::vector<actors::Segment> segments;
    if (tokens > 0)
      segments = {{PolicyVersion(0), Tokens(tokens)}};
    Auditor auditor;
    auditor.feed(
        {0,
         Time(),
         event::Started{colocated()},
         {command::Dispatch{kEngine, LeaseId(1), GroupId(0), PolicyVersion(0), {first}, {}}}});
    auditor.feed({1,
                  Time(),
                  event::Generated{
                      kEngine, {{LeaseId(1), first, Tokens(4), Tokens(tokens), segments, finish}}},
                  {}});
    return any_says(auditor.report().violations, "ended without a token");
  };
  EXPECT_TRUE(says(FinishReason::End, 0));
  EXPECT_TRUE(says(FinishReason::Length, 0));
  EXPECT_FALSE(says(FinishReason::End, 1));
  EXPECT_FALSE(says(FinishReason::Failed, 0));
  EXPECT_FALSE(says(FinishReason::Interrupted, 0));
}

/// Two parts of one response, of versions 0 and 1.
TEST(Auditor, ReportsAResponseOfSeveralVersionsIfTheRunExcludesThem) {
  using actors::FinishReason;
  const auto says = [](bool one_version, std::uint64_t second) {
    SchedulerConfig config = colocated();
    config.one_version = one_version;
    const ResponseId first = ResponseIds(config.responses_per_group).at(GroupId(0), 0);
    const std::vector<actors::Segment> segments{{PolicyVersion(0), Tokens(2)},
                                                {PolicyVersion(second), Tokens(2)}};
    Auditor auditor;
    auditor.feed(
        {0,
         Time(),
         event::Started{config},
         {command::Dispatch{kEngine, LeaseId(1), GroupId(0), PolicyVersion(0), {first}, {}}}});
    auditor.feed(
        {1,
         Time(),
         event::Generated{kEngine,
                          {{LeaseId(1), first, Tokens(4), Tokens(4), segments, FinishReason::End}}},
         {}});
    return any_says(auditor.report().violations, "has tokens of several versions");
  };
  EXPECT_TRUE(says(true, 1));
  EXPECT_FALSE(says(true, 0));
  EXPECT_FALSE(says(false, 1));
}

TEST(Auditor, ReportsTheClockOffsetsOfAttachedWorkers) {
  using namespace std::chrono_literals;
  Auditor auditor;
  auditor.feed({0, Time(), event::Started{colocated()}, {}});
  EXPECT_EQ(auditor.report().clocks, 0U);
  auditor.feed({1, Time(), event::ClockRead{kEngine, -5ms, 2ms}, {}});
  auditor.feed({2, Time(), event::ClockRead{kEngine, 1ms, 1ms}, {}});
  auditor.feed({3, Time(), event::ClockRead{ActorId(1), 3ms, 100us}, {}});
  const AuditReport report = auditor.report();
  EXPECT_EQ(report.clocks, 2U);
  EXPECT_EQ(report.clock_apart, 5ms);
  EXPECT_EQ(report.clock_error, 1ms) << "the estimate for the first worker has improved";
  EXPECT_TRUE(report.violations.empty());
}

TEST(Auditor, CountsTheHostsOfAttachedWorkers) {
  Auditor auditor;
  SchedulerConfig config = colocated();
  config.actors[0].attached = config.actors[1].attached = true;
  auditor.feed({0, Time(), event::Started{config}, {}});
  auditor.feed({1, Time(), event::WorkerAttached{ActorId(0), "gpu-1", 7, "worker"}, {}});
  auditor.feed({2, Time(), event::WorkerAttached{ActorId(1), "gpu-1", 8, "worker"}, {}});
  auditor.feed({3, Time(), event::WorkerAttached{ActorId(1), "gpu-2", 9, "worker"}, {}});
  EXPECT_EQ(auditor.report().attached, 3U);
  EXPECT_EQ(auditor.report().hosts, 2U);
  EXPECT_TRUE(auditor.report().violations.empty());
  auditor.feed({4, Time(), event::WorkerAttached{ActorId(2), "gpu-3", 9, "worker"}, {}});
  EXPECT_TRUE(any_says(auditor.report().violations, "whose worker the run starts"));
}

/// A late report under the lease of a group that was prepared for the step is stale.
TEST(Auditor, AStepEndsTheLeasesOfItsPreparedGroups) {
  constexpr ActorId kTrainer(2);
  constexpr GroupId kGroup(0);
  const ResponseId first = ResponseIds(colocated().responses_per_group).at(kGroup, 0);
  actors::Certificate certificate;
  certificate.groups.emplace_back().group = kGroup;
  Auditor auditor;
  auditor.feed({0,
                Time(),
                event::Started{colocated()},
                {command::Dispatch{kEngine, LeaseId(1), kGroup, PolicyVersion(0), {first}, {}},
                 command::Prepare{kTrainer, LeaseId(2), PolicyVersion(0), {first}},
                 command::Train{kTrainer, LeaseId(3), certificate, {first}}}});
  auditor.feed(
      {1, Time(), event::Trained{kTrainer, LeaseId(3), PolicyVersion(1), {kGroup}, {}}, {}});
  const auto before = auditor.report().violations;
  auditor.feed({2, Time(), event::Trained{kTrainer, LeaseId(2), PolicyVersion(1), {}, {}}, {}});
  EXPECT_EQ(auditor.report().violations, before);
}

TEST(Auditor, OnlyAGeneratedResponseCanBeLost) {
  Auditor auditor;
  auditor.feed({0, Time(), event::Started{colocated()}, {}});
  auditor.feed({1, Time(), event::Resumed{.sequence = 0, .lost = {ResponseId(5)}}, {}});
  EXPECT_TRUE(any_says(auditor.report().violations, "response 5 is lost, but it was not there"));
}

TEST(Auditor, OnlyResponsesOfABatchThatIsHeldCanLoseTheirTensors) {
  constexpr ActorId kTrainer(2);
  const auto said = [&](const event::TensorsLost& lost) {
    Auditor auditor;
    auditor.feed({0,
                  Time(),
                  event::Started{colocated()},
                  {command::Train{kTrainer, LeaseId(3), {}, {ResponseId(0)}}}});
    auditor.feed({1, Time(), lost, {}});
    return auditor.report().violations;
  };
  EXPECT_TRUE(any_says(said({LeaseId(4), {}}), "tensors of lease 4 are lost, which nobody holds"));
  EXPECT_TRUE(any_says(said({LeaseId(3), {ResponseId(1)}}), "it is not in the batch"));
  EXPECT_TRUE(any_says(said({LeaseId(3), {ResponseId(0)}}), "but it was not there"));
}

TEST(Auditor, RemovedActorsGetNoWorkAndKeepTheirIds) {
  SchedulerConfig config = colocated();
  config.actors[0].takes_turns = false;
  config.actors.push_back({"reward-1", actors::RoleKind::Reward, {}, 0});
  SchedulerConfig fewer = config;
  fewer.actors[3].away = true;
  const auto after = [&](const SchedulerConfig& next) {
    Auditor auditor;
    auditor.feed({0, Time(), event::Started{config}, {}});
    auditor.feed({1,
                  Time(),
                  event::Resumed{0, 0, next},
                  {command::Judge{ActorId(3), LeaseId(1), {ResponseId(0)}}}});
    return auditor.report().violations;
  };
  EXPECT_TRUE(any_says(after(fewer), "work is given to reward-1, which was removed"));
  EXPECT_FALSE(any_says(after(config), "was removed"));
  EXPECT_FALSE(any_says(after(config), "changes its meaning"));
  SchedulerConfig other = config;
  std::swap(other.actors[1], other.actors[0]);
  EXPECT_TRUE(any_says(after(other), "the id of an actor changes its meaning"));
  other = config;
  other.actors.pop_back();
  EXPECT_TRUE(any_says(after(other), "the id of an actor changes its meaning"));
}

}  // namespace
}  // namespace temper::orchestrator
