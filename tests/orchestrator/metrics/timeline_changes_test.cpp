// The time line of a run whose actors change.
#include "tests/orchestrator/metrics/timeline_feed.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using actors::CardState;
using actors::RoleKind;

/// rollout-0 alone on cards 0 and 1, then rollout-1 on card 1, then rollout-0 alone again.
TEST(Timeline, OfCardsWhoseActorsComeAndGoStillSumsToTheWallTime) {
  SchedulerConfig one;
  one.actors = {{"rollout-0", RoleKind::Rollout, {CardId(0), CardId(1)}, 4},
                {"trainer-0", RoleKind::Trainer, {CardId(2)}, 0}};
  SchedulerConfig two = one;
  two.actors[0].cards = {CardId(0)};
  two.actors.push_back({"rollout-1", RoleKind::Rollout, {CardId(1)}, 4});
  SchedulerConfig again = two;
  again.actors[0].cards = {CardId(0), CardId(1)};
  again.actors[2].away = true;
  constexpr ActorId kLater(2);

  TimelineFeed f(one);
  f.wait(0, kRollout, CardState::WaitQuota, {WaitKind::StalenessBound});
  f.busy(50, kRollout, {{CardState::Decode, at_ns(10), at_ns(30)}});
  EXPECT_EQ(f.timeline.lines().size(), 2U);
  f.event(100, event::Resumed{0, 0, two});
  f.wait(110, kLater, CardState::WaitQuota, {WaitKind::StalenessBound});
  f.busy(150, kLater, {{CardState::Decode, at_ns(120), at_ns(140)}});
  f.busy(150, kRollout, {{CardState::Decode, at_ns(130), at_ns(135)}});
  EXPECT_EQ(f.ns(1, CardState::WaitQuota, 120), 10 + 70 + 10)
      << "also before the actor that works next was added";
  EXPECT_EQ(f.ns(1, CardState::Down, 120), 10);
  f.event(200, event::Resumed{0, 0, again});
  f.wait(200, kLater, CardState::Down, {WaitKind::Removed});
  f.busy(250, kRollout, {{CardState::Decode, at_ns(210), at_ns(220)}});
  EXPECT_EQ(f.timeline.lines().size(), 3U) << "cards with different actors have separate lines";
  EXPECT_EQ(f.ns(0, CardState::Decode, 300), 20 + 5 + 10);
  EXPECT_EQ(f.ns(1, CardState::Decode, 300), 20 + 20 + 10);
  for (std::size_t card = 0; card < 3; ++card)
    EXPECT_EQ(sum(f.timeline.totals(card, at_ns(300))), 300);
  Duration waited{}, waits{};
  for (const WaitTotal& wait : f.timeline.waits(at_ns(300)))
    waits += wait.card_time;
  const StateTimes all = f.timeline.totals(at_ns(300));
  for (std::size_t s = 0; s < kCardStates; ++s)
    waited += is_span(static_cast<CardState>(s)) ? Duration{} : all[s];
  EXPECT_EQ(waits, waited);
}

TEST(Timeline, OfACardThatCameLaterBeginsDown) {
  TimelineFeed f;
  f.wait(0, kRollout, CardState::Idle);
  SchedulerConfig more = two_cards();
  more.actors.push_back({"rollout-1", RoleKind::Rollout, {CardId(7)}, 4});
  f.event(100, event::Resumed{0, 0, more});
  f.busy(150, ActorId(3), {{CardState::Decode, at_ns(110), at_ns(150)}});
  ASSERT_EQ(f.timeline.cards().back(), CardId(7));
  EXPECT_EQ(f.ns(2, CardState::Down, 150), 110);
  EXPECT_EQ(f.ns(2, CardState::Decode, 150), 40);
}

}  // namespace
}  // namespace temper::orchestrator
