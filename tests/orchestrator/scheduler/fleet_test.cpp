// Fleet: who there is, who shares cards with whom, and which deadline an actor has missed.
#include "orchestrator/scheduler/state/fleet.hpp"

#include "core/random.hpp"
#include "tests/support/times.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace temper::orchestrator {
namespace {

using actors::RoleKind;
using actors::SwitchAction;

constexpr ActorId kFleetTrainer(0), kFleetEngine(1), kFleetOther(2), kFleetReference(3),
    kFleetReward(4);

enum class Turns { None, OneEngine, Engines, All };

Fleet fleet_of(Turns turns) {
  const bool shared = turns == Turns::Engines || turns == Turns::All;
  return Fleet({{"trainer", RoleKind::Trainer, {}, 0, false},
                {"rollout-0", RoleKind::Rollout, {}, 4, shared},
                {"rollout-1", RoleKind::Rollout, {}, 4, turns != Turns::None},
                {"reference-0", RoleKind::Reference, {}, 0, turns == Turns::All},
                {"reward-0", RoleKind::Reward, {}, 0, false}});
}

/// A fleet whose actors are all ready, and none of which was asked for anything.
Fleet ready_fleet() {
  Fleet fleet = fleet_of(Turns::All);
  for (std::uint32_t i = 0; i < fleet.size(); ++i)
    fleet.change(ActorId(i)).life = Life::Ready;
  return fleet;
}

TEST(Fleet, FindsItsActorsByRoleInTheOrderOfTheirIds) {
  const Fleet fleet = fleet_of(Turns::None);
  EXPECT_EQ(fleet.size(), 5U);
  EXPECT_EQ(fleet.trainer(), kFleetTrainer);
  EXPECT_EQ(fleet.rollouts(), (std::vector{kFleetEngine, kFleetOther}));
  EXPECT_EQ(fleet.with_role(RoleKind::Reference), std::vector{kFleetReference});
  EXPECT_EQ(fleet.with_role(RoleKind::Reward), std::vector{kFleetReward});
  EXPECT_EQ(fleet.spec(kFleetOther).name, "rollout-1");
}

TEST(Fleet, StartsWithNobodyAliveAndNoDeadline) {
  Fleet fleet = fleet_of(Turns::None);
  for (std::uint32_t i = 0; i < fleet.size(); ++i) {
    EXPECT_EQ(fleet.state(ActorId(i)).life, Life::Down);
    EXPECT_FALSE(fleet.state(ActorId(i)).ready());
  }
  EXPECT_EQ(fleet.next_deadline(), std::nullopt);
  EXPECT_EQ(fleet.overdue(at(1000)), std::nullopt);
}

TEST(Fleet, KnowsWhoTakesTurnsOnTheTrainersCards) {
  EXPECT_FALSE(fleet_of(Turns::None).takes_turns());
  const Fleet all = fleet_of(Turns::All);
  EXPECT_TRUE(all.takes_turns());
  EXPECT_EQ(all.turning_engines(), (std::vector{kFleetEngine, kFleetOther}));
  EXPECT_EQ(all.turning_references(), std::vector{kFleetReference});
  EXPECT_TRUE(fleet_of(Turns::Engines).turning_references().empty());
}

TEST(Fleet, LendsWhereSomeEnginesShareTheTrainersCardsAndOthersDoNot) {
  EXPECT_FALSE(fleet_of(Turns::None).lends());
  EXPECT_TRUE(fleet_of(Turns::OneEngine).lends());
  EXPECT_FALSE(fleet_of(Turns::Engines).lends());
}

TEST(Fleet, AnActorThatStartsIsOverdueFromItsDeadlineOn) {
  Fleet fleet = fleet_of(Turns::None);
  fleet.change(kFleetEngine).life = Life::Launching;
  fleet.change(kFleetEngine).launch_deadline = at(30);
  EXPECT_EQ(fleet.next_deadline(), at(30));
  EXPECT_EQ(fleet.overdue(at(29)), std::nullopt);
  EXPECT_EQ(fleet.overdue(at(30)), (Overdue{kFleetEngine, DeadlineKind::Start}));
  fleet.change(kFleetEngine).life = Life::Ready;
  EXPECT_EQ(fleet.next_deadline(), std::nullopt) << "it is there: the deadline is met";
}

TEST(Fleet, WeightsAreDueUntilTheyAreCommitted) {
  Fleet fleet = ready_fleet();
  ActorState& engine = fleet.change(kFleetEngine);
  engine.staging = PolicyVersion(7);
  engine.weights_deadline = at(60);
  EXPECT_EQ(fleet.overdue(at(60)),
            (Overdue{kFleetEngine, DeadlineKind::StageWeights, PolicyVersion(7)}));
  engine.staged = engine.committing = true;
  EXPECT_EQ(fleet.overdue(at(60)),
            (Overdue{kFleetEngine, DeadlineKind::CommitWeights, PolicyVersion(7)}));
  engine.staging.reset();
  EXPECT_EQ(fleet.overdue(at(60)), std::nullopt);
}

TEST(Fleet, AnActionOfASwitchIsDueUntilItIsAnswered) {
  Fleet fleet = ready_fleet();
  fleet.change(kFleetTrainer).switching = SwitchAction::OffloadOptimizer;
  fleet.change(kFleetTrainer).switch_deadline = at(10);
  EXPECT_EQ(fleet.next_deadline(), at(10));
  EXPECT_EQ(
      fleet.overdue(at(11)),
      (Overdue{kFleetTrainer, DeadlineKind::Switch, std::nullopt, SwitchAction::OffloadOptimizer}));
  fleet.change(kFleetTrainer).switching.reset();
  EXPECT_EQ(fleet.next_deadline(), std::nullopt);
}

TEST(Fleet, TheEarliestOfAllDeadlinesIsTheNext) {
  Fleet fleet = ready_fleet();
  ActorState& engine = fleet.change(kFleetEngine);
  engine.staging = PolicyVersion(1);
  engine.weights_deadline = at(50);
  engine.switching = SwitchAction::AllocateKv;
  engine.switch_deadline = at(40);
  fleet.change(kFleetOther).life = Life::Launching;
  fleet.change(kFleetOther).launch_deadline = at(45);
  EXPECT_EQ(fleet.next_deadline(), at(40));
  engine.switching.reset();
  EXPECT_EQ(fleet.next_deadline(), at(45));
  EXPECT_EQ(fleet.overdue(at(45)), (Overdue{kFleetOther, DeadlineKind::Start}))
      << "the other's comes later";
}

TEST(Fleet, OfSeveralThatAreLateTheFirstActorIsNamed) {
  Fleet fleet = fleet_of(Turns::None);
  for (const ActorId a : {kFleetReward, kFleetEngine}) {
    fleet.change(a).life = Life::Launching;
    fleet.change(a).launch_deadline = at(a == kFleetEngine ? 20 : 10);
  }
  EXPECT_EQ(fleet.overdue(at(10)), (Overdue{kFleetReward, DeadlineKind::Start}));
  EXPECT_EQ(fleet.overdue(at(20)), (Overdue{kFleetEngine, DeadlineKind::Start}));
}

TEST(Fleet, AReplacementOwesItsStartAndNothingThatItsPredecessorOwed) {
  Fleet fleet = ready_fleet();
  ActorState& engine = fleet.change(kFleetEngine);
  engine.staging = PolicyVersion(3);
  engine.weights_deadline = at(10);
  engine.switching = SwitchAction::FreeKv;
  engine.switch_deadline = at(10);
  engine.life = Life::Down;
  EXPECT_EQ(fleet.overdue(at(100)), std::nullopt) << "the dead owe nothing";
  fleet.change(kFleetEngine).life = Life::Launching;
  fleet.change(kFleetEngine).launch_deadline = at(30);
  EXPECT_EQ(fleet.next_deadline(), at(30));
  EXPECT_EQ(fleet.overdue(at(29)), std::nullopt);
}

/// Of all actors, whether the fleet watches them or not.
std::optional<Time> earliest_launch_or_start(const Fleet& fleet) {
  std::optional<Time> earliest;
  for (std::uint32_t i = 0; i < fleet.size(); ++i) {
    const ActorState& a = fleet.state(ActorId(i));
    if (a.life != Life::Launching && a.life != Life::Waiting)
      continue;
    const Time t = a.life == Life::Launching ? a.launch_deadline : a.launch_at;
    earliest = earliest ? std::min(*earliest, t) : t;
  }
  return earliest;
}

TEST(Fleet, ForgetsNoDeadlineOfAnActorWhateverChanges) {
  Fleet fleet = fleet_of(Turns::None);
  Random random(1, "fleet");
  for (std::int64_t now = 0; now < 2000; ++now) {
    ActorState& a = fleet.change(ActorId(static_cast<std::uint32_t>(random.below(fleet.size()))));
    a.life = std::array{Life::Launching, Life::Ready, Life::Down, Life::Waiting}[random.below(4)];
    a.launch_at = a.launch_deadline = at(now + static_cast<std::int64_t>(random.below(50)));
    const auto expected = earliest_launch_or_start(fleet);
    ASSERT_EQ(fleet.next_deadline(), expected);
    const auto missed = fleet.overdue(at(now));
    ASSERT_EQ(fleet.next_deadline(), expected) << "overdue() forgets none that is to come";
    if (missed) {
      ASSERT_LE(fleet.state(missed->actor).launch_deadline, at(now));
    }
  }
}

}  // namespace
}  // namespace temper::orchestrator
