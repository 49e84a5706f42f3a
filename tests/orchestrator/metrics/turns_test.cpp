#include "orchestrator/metrics/turns.hpp"

#include "orchestrator/scheduler/state/config.hpp"
#include "tests/support/times.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using actors::RoleKind;
using actors::SwitchAction;

/// Two engines, of which the second shares the cards of the trainer.
class TurnsTest : public ::testing::Test {
 protected:
  TurnsTest() {
    event::Started started;
    started.config->actors = {{"rollout-0", RoleKind::Rollout, {CardId(0)}, 8, false},
                              {"rollout-1", RoleKind::Rollout, {CardId(1)}, 8, true},
                              {"rollout-2", RoleKind::Rollout, {CardId(1)}, 8, true},
                              {"trainer", RoleKind::Trainer, {CardId(1)}, 0, false}};
    feed(0, started);
  }
  void feed(double time, Event event, Commands commands = {}) {
    turns.feed({sequence_++, at(time), std::move(event), std::move(commands)});
  }
  Event switched(std::uint32_t actor, SwitchAction action) {
    return event::Switched{ActorId(actor), action, {}, ""};
  }

  Turns turns;

 private:
  std::uint64_t sequence_ = 0;
};

TEST_F(TurnsTest, AStateLastsFromItsFirstCommandToItsLastAnswer) {
  feed(1,
       event::DeadlineReached{},
       {command::Switch{ActorId(1), SwitchAction::AllocateKv},
        command::Switch{ActorId(2), SwitchAction::AllocateKv}});
  feed(2, switched(2, SwitchAction::AllocateKv));
  EXPECT_TRUE(turns.states().empty());
  feed(4, switched(1, SwitchAction::AllocateKv));
  const TurnState& state = turns.states().at("allocate_kv");
  EXPECT_EQ(state.count, 1U);
  EXPECT_EQ(state.total, from_seconds(3));
}

TEST_F(TurnsTest, EnginesOnCardsOfTheirOwnDoNotCount) {
  feed(1, event::DeadlineReached{}, {command::StageWeights{ActorId(0), PolicyVersion(1)}});
  feed(2, event::WeightsStaged{ActorId(0), PolicyVersion(1), ""});
  EXPECT_TRUE(turns.states().empty());
  feed(3, event::DeadlineReached{}, {command::StageWeights{ActorId(1), PolicyVersion(1)}});
  feed(5, event::WeightsStaged{ActorId(1), PolicyVersion(1), ""});
  EXPECT_EQ(turns.states().at("reshard").longest, from_seconds(2));
}

TEST_F(TurnsTest, AnActorThatIsReplacedIsNotWaitedFor) {
  feed(1,
       event::DeadlineReached{},
       {command::Switch{ActorId(1), SwitchAction::FreeKv},
        command::Switch{ActorId(2), SwitchAction::FreeKv}});
  feed(2,
       event::ActorDown{ActorId(2), "died"},
       {command::Launch{ActorId(2), reason_with(ReasonKind::WorkerLost, "died")}});
  feed(3, switched(1, SwitchAction::FreeKv));
  EXPECT_EQ(turns.states().at("free_kv").count, 1U);
}

}  // namespace
}  // namespace temper::orchestrator
