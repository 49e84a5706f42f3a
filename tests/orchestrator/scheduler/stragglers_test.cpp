// The means that shorten stragglers, one at a time, on a scheduler that is fed by hand.
#include "orchestrator/scheduler/dispatch/length_forecast.hpp"
#include "orchestrator/scheduler/scheduler.hpp"
#include "orchestrator/scheduler/staleness/exact.hpp"
#include "orchestrator/scheduler/staleness/in_order.hpp"

#include <gtest/gtest.h>

#include <map>

namespace temper::orchestrator {
namespace {

using Demand = StalenessRule::Demand;

PolicyVersion version_of(std::uint64_t n) {
  return PolicyVersion(n);
}

OutstandingGroups standing(double bound,
                           std::int32_t batch,
                           std::uint64_t step,
                           GroupsByVersion groups) {
  OutstandingGroups s;
  s.bound = bound;
  s.batch = batch;
  s.step = version_of(step);
  s.outstanding = std::move(groups);
  return s;
}

TEST(Demand, UnderTheExactRuleIsTheOldestVersionWithoutWhichNoUpdateMayBe) {
  const ExactRule exact;
  // eta 1, B 2, step 1: all full. After step 1, at step 2, deadline 1 has room for 0, deadline 2
  // for 2: two of v0 = 0 are demanded, and none of v0 = 1 beyond them (4 - 2 = 2).
  EXPECT_EQ(exact.demand(standing(1, 2, 1, {{version_of(0), 2}, {version_of(1), 2}})),
            (Demand{version_of(0), 2}));
  // Nothing is at its deadline: 2 groups of v0 = 1 fit where 2 may be.
  EXPECT_EQ(exact.demand(standing(1, 2, 1, {{version_of(1), 2}})), std::nullopt);
  // Three of v0 = 1 are one too many for step 2.
  EXPECT_EQ(exact.demand(standing(1, 2, 1, {{version_of(1), 3}})), (Demand{version_of(1), 1}));
}

TEST(Demand, LooksAtTheUpdateAfterTheOneUnderWay) {
  const ExactRule exact;
  OutstandingGroups s = standing(1, 2, 1, {{version_of(0), 2}, {version_of(1), 2}});
  s.in_training = {{version_of(0), 2}};
  s.updating = true;
  // Once they have left, step 2 takes what has deadline 2; at step 3 there is no room for it.
  EXPECT_EQ(exact.demand(s), (Demand{version_of(1), 2}));
}

TEST(Demand, InOrderIsTheVersionOfTheLastGroupOfTheNextBatch) {
  const InOrderRule in_order;
  EXPECT_EQ(in_order.demand(
                standing(2, 3, 0, {{version_of(0), 2}, {version_of(1), 2}, {version_of(2), 5}})),
            (Demand{version_of(1), 4}));
  EXPECT_EQ(in_order.demand(standing(2, 3, 0, {{version_of(0), 2}})), std::nullopt);
}

TEST(LengthForecast, LeansOnFinishedSiblingsAndOnAllResponsesForOneMore) {
  LengthForecast forecast;
  Group group;
  group.rows.resize(3);
  EXPECT_EQ(forecast.of(group), 0);
  forecast.ended(Tokens(100));
  forecast.ended(Tokens(300));
  EXPECT_EQ(forecast.of(group), 200);  // no sibling has ended: the mean of all
  group.rows[1].tokens = Tokens(800);
  group.rows[1].consumed = 1U << static_cast<unsigned>(Task::Generate);
  EXPECT_EQ(forecast.of(group), 500);  // (800 + 200) / 2
}

/// Two engines, one response to a group; everything else answers at once.
class Stragglers : public ::testing::Test {
 protected:
  void SetUp() override {
    config.actors = {{"rollout-0", actors::RoleKind::Rollout, {CardId(0)}, 24},
                     {"rollout-1", actors::RoleKind::Rollout, {CardId(1)}, 24},
                     {"reward-0", actors::RoleKind::Reward, {CardId(0)}, 0},
                     {"trainer", actors::RoleKind::Trainer, {CardId(2)}, 0}};
    config.steps = 100;
    config.groups_per_update = 8;
    config.staleness_bound = 0;
  }
  void start() {
    feed(event::Started{config});
    for (std::uint32_t i = 0; i < config.actors.size(); ++i)
      feed(event::ActorReady{ActorId(i), i == 3 ? std::optional(version_of(0)) : std::nullopt});
  }
  void give_weights(std::uint32_t engine) {
    feed(event::WeightsStaged{ActorId(engine), version_of(0), ""});
    feed(event::WeightsCommitted{ActorId(engine), version_of(0), ""});
    feed(event::Switched{ActorId(engine), actors::SwitchAction::AllocateKv, {}, ""});
  }
  void feed(const Event& event) {
    for (const Command& c : scheduler.on(event, Time{})) {
      if (const auto* d = std::get_if<command::Dispatch>(&c)) {
        dispatches.push_back(*d);
        for (const ResponseId r : d->responses)
          at[r] = *d;
      }
      if (const auto* w = std::get_if<command::Withdraw>(&c))
        withdrawn.push_back(*w);
    }
  }
  std::int32_t load(std::uint32_t engine) const {
    return scheduler.queue().load(ActorId(engine)).responses;
  }
  event::Generated::Item item(ResponseId r, actors::FinishReason finish) const {
    return {at.at(r).lease, r, Tokens(1), Tokens(10), {{version_of(0), Tokens(10)}}, finish};
  }
  void end(ResponseId r) {
    feed(event::Generated{at.at(r).actor, {item(r, actors::FinishReason::End)}});
  }
  void start_with_weights() {
    start();
    give_weights(0);
    give_weights(1);
  }
  void empty_engine_1() {
    for (const auto& d : std::vector(dispatches)) {
      if (d.actor == ActorId(1))
        end(d.responses.front());
    }
  }

  SchedulerConfig config;
  Scheduler scheduler;
  std::vector<command::Dispatch> dispatches;
  std::vector<command::Withdraw> withdrawn;
  std::map<ResponseId, command::Dispatch> at;
};

TEST_F(Stragglers, TheFirstEngineWithWeightsTakesNoMoreThanItsShare) {
  start();
  give_weights(0);
  EXPECT_EQ(load(0), 4);
  give_weights(1);
  EXPECT_EQ(load(1), 4);
}

TEST_F(Stragglers, WithoutAnEvenLoadTheFirstEngineTakesAll) {
  config.stragglers.even_load = false;
  start_with_weights();
  EXPECT_EQ(load(0), 8);
  EXPECT_EQ(load(1), 0);
}

TEST_F(Stragglers, WhatTheNextUpdateNeedsMovesToTheEmptierEngine) {
  start_with_weights();
  empty_engine_1();
  // 4 on one engine, fewer and fewer on the other: at 2 the difference pays.
  ASSERT_FALSE(withdrawn.empty());
  EXPECT_EQ(withdrawn[0].actor, ActorId(0));
  ASSERT_EQ(withdrawn[0].responses.size(), 1U);
  const ResponseId moved = withdrawn[0].responses[0];
  const std::size_t before = dispatches.size();
  auto part = item(moved, actors::FinishReason::Interrupted);
  part.cached = true;
  feed(event::Generated{ActorId(0), {part}});
  ASSERT_EQ(dispatches.size(), before + 1);
  EXPECT_EQ(dispatches.back().actor, ActorId(1));
  EXPECT_EQ(dispatches.back().responses, std::vector{moved});
  EXPECT_EQ(dispatches.back().cached_on, std::vector{std::optional(ActorId(0))});
}

TEST_F(Stragglers, NothingMovesThatNoUpdateWaitsFor) {
  // 8 groups under v0 = 0 at eta 2: step 1 has room for 16 of deadline 2, none is demanded.
  config.staleness_bound = 2;
  config.stragglers.dispatch_ahead = false;
  start_with_weights();
  empty_engine_1();
  EXPECT_EQ(load(0), 4);
  EXPECT_EQ(load(1), 0);
  EXPECT_TRUE(withdrawn.empty());
}

TEST_F(Stragglers, NothingLeavesAnEngineThatIsNearlyEmpty) {
  for (ActorSpec& actor : config.actors)
    actor.concurrency = 64;  // 4 of 64 slots
  start_with_weights();
  empty_engine_1();
  EXPECT_EQ(load(0), 4);
  EXPECT_TRUE(withdrawn.empty());
}

TEST_F(Stragglers, WithoutMigrationNothingMoves) {
  config.stragglers.migrate = false;
  start_with_weights();
  empty_engine_1();
  EXPECT_TRUE(withdrawn.empty());
}

TEST_F(Stragglers, ATokenWeightedAgeCountsFromTheMeanVersionOnceAllIsGenerated) {
  config.age = AgeRule::TokenWeighted;
  config.responses_per_group = 2;
  config.staleness_bound = 3;
  start();
  give_weights(0);
  const command::Dispatch first = dispatches.front();
  const auto& queue = scheduler.queue();
  const auto part = [&](std::size_t k, std::vector<actors::Segment> segments) {
    Tokens sum;
    for (const auto& s : segments)
      sum += s.tokens;
    feed(event::Generated{
        ActorId(0),
        {{first.lease, first.responses[k], Tokens(1), sum, segments, actors::FinishReason::End}}});
  };
  part(0, {{version_of(0), Tokens(10)}});
  EXPECT_EQ(queue.group(first.group)->age_from(), version_of(0));
  // (10 x 0 + 10 x 0 + 30 x 2) / 50 = 1.2
  part(1, {{version_of(0), Tokens(10)}, {version_of(2), Tokens(30)}});
  EXPECT_EQ(queue.group(first.group)->age_from(), version_of(1));
  EXPECT_EQ(queue.group(first.group)->dispatched, version_of(0));
}

TEST_F(Stragglers, WithoutDispatchAheadAVersionBeginsOneBatch) {
  config.staleness_bound = 2;
  config.stragglers.dispatch_ahead = false;
  start_with_weights();
  EXPECT_EQ(load(0) + load(1), 8);
}

}  // namespace
}  // namespace temper::orchestrator
