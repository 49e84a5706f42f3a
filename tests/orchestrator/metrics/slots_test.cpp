#include "orchestrator/metrics/slots.hpp"

#include "orchestrator/scheduler/state/config.hpp"
#include "tests/support/times.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using actors::RoleKind;

constexpr ActorId kFirstEngine(0), kSecondEngine(1);

/// Two engines of four slots each.
class SlotsFeed {
 public:
  SlotsFeed() {
    SchedulerConfig c;
    c.actors = {{"rollout-0", RoleKind::Rollout, {CardId(0)}, 4},
                {"rollout-1", RoleKind::Rollout, {CardId(1)}, 4},
                {"trainer", RoleKind::Trainer, {CardId(2)}, 0}};
    event(0, event::Started{c});
  }
  void event(std::int64_t s, Event e, Commands commands = {}) {
    slots.feed({sequence_++, at(s), std::move(e), std::move(commands)});
  }
  void dispatch(std::int64_t s, ActorId engine, std::vector<ResponseId> responses) {
    command::Dispatch c;
    c.actor = engine;
    c.responses = std::move(responses);
    event(s, event::DeadlineReached{}, {c});
  }
  void generated(std::int64_t s, ActorId engine, std::vector<ResponseId> responses) {
    event::Generated e{engine, {}};
    for (const ResponseId r : responses)
      e.items.push_back({.lease = {}, .response = r, .prompt = {}, .tokens = {}, .segments = {}});
    event(s, e);
  }
  Slots slots;

 private:
  std::uint64_t sequence_ = 0;
};

TEST(Slots, AnEngineWithOneResponseOfFourIsAQuarterFull) {
  SlotsFeed f;
  f.dispatch(0, kFirstEngine, {ResponseId(1)});
  f.generated(100, kFirstEngine, {ResponseId(1)});
  EXPECT_DOUBLE_EQ(f.slots.response_seconds(at(200)), 100);
  EXPECT_DOUBLE_EQ(f.slots.while_serving(at(200)), 0.25);  // 100 of 4 x 100
  EXPECT_DOUBLE_EQ(f.slots.over_wall(at(200)), 100.0 / (8 * 200));
}

TEST(Slots, AResponseThatMovesCountsWhereItIs) {
  SlotsFeed f;
  f.dispatch(0, kFirstEngine, {ResponseId(1), ResponseId(2)});
  f.generated(10, kFirstEngine, {ResponseId(1)});  // Interrupted or finished: it is gone.
  f.dispatch(20, kSecondEngine, {ResponseId(1)});
  EXPECT_EQ(f.slots.load(), 2);
  f.generated(30, kFirstEngine, {ResponseId(1)});  // Late: another engine has it.
  EXPECT_EQ(f.slots.load(), 2);
  EXPECT_DOUBLE_EQ(f.slots.response_seconds(at(30)), 10 * 2 + 10 * 1 + 10 * 2);
}

TEST(Slots, WhatAnEngineHeldIsGoneWithIt) {
  SlotsFeed f;
  f.dispatch(0, kFirstEngine, {ResponseId(1), ResponseId(2)});
  f.dispatch(0, kSecondEngine, {ResponseId(3)});
  f.event(10,
          event::ActorDown{kFirstEngine, "ended"},
          {command::Launch{kFirstEngine, reason_with(ReasonKind::WorkerLost, "ended")}});
  EXPECT_EQ(f.slots.load(), 1);
  f.event(20, event::Resumed{});
  EXPECT_EQ(f.slots.load(), 0);
  EXPECT_DOUBLE_EQ(f.slots.response_seconds(at(50)), 10 * 3 + 10 * 1);
}

TEST(Slots, AnEngineThatHasNothingDoesNotCountAsEmpty) {
  SlotsFeed f;
  f.dispatch(0, kFirstEngine, {ResponseId(1), ResponseId(2)});
  f.generated(10, kFirstEngine, {ResponseId(1), ResponseId(2)});
  f.dispatch(90, kFirstEngine, {ResponseId(3)});
  f.generated(100, kFirstEngine, {ResponseId(3)});
  EXPECT_DOUBLE_EQ(f.slots.while_serving(at(500)), 30.0 / (4 * 20));
}

TEST(Slots, WithoutEnginesThereIsNothingToFill) {
  Slots slots;
  EXPECT_EQ(slots.over_wall(at(10)), 0);
  EXPECT_EQ(slots.while_serving(at(10)), 0);
}

TEST(Slots, AreThoseThatThereWereAtTheTime) {
  SlotsFeed f;
  SchedulerConfig c;
  c.actors = {{"rollout-0", RoleKind::Rollout, {CardId(0)}, 2},
              {"rollout-1", RoleKind::Rollout, {CardId(1)}, 4},
              {"trainer", RoleKind::Trainer, {CardId(2)}, 0}};
  c.actors[1].away = true;
  f.dispatch(0, kFirstEngine, {ResponseId(1)});
  f.event(100, event::Resumed{0, 0, c});
  EXPECT_EQ(f.slots.slots(), 2);
  f.dispatch(100, kFirstEngine, {ResponseId(1)});
  EXPECT_DOUBLE_EQ(f.slots.response_seconds(at(200)), 200);
  EXPECT_DOUBLE_EQ(f.slots.while_serving(at(200)), 200.0 / (4 * 100 + 2 * 100));
  EXPECT_DOUBLE_EQ(f.slots.over_wall(at(200)), 200.0 / (8 * 100 + 2 * 100));
}

}  // namespace
}  // namespace temper::orchestrator
