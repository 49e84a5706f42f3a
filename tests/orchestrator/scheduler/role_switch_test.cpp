// RoleSwitch: every numbered transition of its header, what holds each up, and what is refused.
#include "orchestrator/scheduler/sharing/role_switch.hpp"

#include "tests/orchestrator/scheduler/shared_cards.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using actors::SwitchAction;
using testing::kEngine;
using testing::kOther;
using testing::kReference;
using testing::kTrainer;
using testing::SharedCards;
using Asked = SharedCards::Asked;
using P = SwitchPhase;
using Scoring = RoleSwitch::Scoring;

TEST(RoleSwitch, WhereNobodyTakesTurnsOneStateAllowsTraining) {
  const Fleet fleet({{"trainer", actors::RoleKind::Trainer, {}, 0, false},
                     {"rollout-0", actors::RoleKind::Rollout, {}, 4, false}});
  RoleSwitch turns(fleet);
  turns.request_rollout();
  turns.request_scoring();
  turns.request_training(Scoring::Needed, {kEngine, kOther});
  turns.scored();
  ASSERT_TRUE(turns.advance(fleet, PolicyVersion(0), [](ActorId, SwitchAction) {
    ADD_FAILURE() << "nobody is asked for anything";
  }));
  EXPECT_EQ(turns.phase(), P::Separate);
  EXPECT_TRUE(turns.allows_training());
}

TEST(RoleSwitch, StartsInTrainAndStaysThereUntilAsked) {
  SharedCards cards;
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Train);
  EXPECT_TRUE(cards.asked.empty());
}

TEST(RoleSwitch, Transitions1And2DrainOnlyForAReadyTrainer) {
  SharedCards cards;
  cards.state(kTrainer).life = Life::Launching;
  cards.turns.request_rollout();
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::DrainTrain);
  EXPECT_TRUE(cards.asked.empty());
  cards.state(kTrainer).life = Life::Ready;
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::OffloadOptimizer);
  EXPECT_EQ(cards.take_asked(), (Asked{{kTrainer, SwitchAction::OffloadOptimizer}}));
}

TEST(RoleSwitch, Transition3WaitsUntilTheOptimizerIsOnTheHost) {
  SharedCards cards;
  cards.turns.request_rollout();
  cards.advance();
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::OffloadOptimizer);
  EXPECT_EQ(cards.take_asked().size(), 1U) << "it is asked once";
  cards.answer(kTrainer);
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Reshard);
}

TEST(RoleSwitch, Transition3LeadsToScoringWhereThatWasAsked) {
  SharedCards cards;
  cards.turns.request_scoring();
  cards.advance();
  cards.answer(kTrainer);
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::OnloadReference);
}

TEST(RoleSwitch, Transition4WaitsUntilEveryEngineHasStagedThePublishedVersion) {
  SharedCards cards;
  cards.go_to(P::Reshard);
  cards.stage(kEngine, cards.published);
  cards.stage(kOther, PolicyVersion(cards.published.value() - 1));
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Reshard) << "an older version does not do";
  cards.stage(kOther, cards.published);
  cards.state(kOther).staged = false;
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Reshard) << "asked is not staged";
  cards.state(kOther).staged = true;
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Bind);
}

TEST(RoleSwitch, Transition5IsTheVersionGate) {
  SharedCards cards;
  cards.go_to(P::Bind);
  cards.commit(kEngine);
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Bind);
  EXPECT_FALSE(cards.turns.allows_kv(kEngine));
  cards.commit(kOther);
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::KvAlloc);
  EXPECT_TRUE(cards.turns.allows_kv(kEngine));
}

TEST(RoleSwitch, Transition6WaitsForTheCachesOfTheEnginesThatAreBound) {
  SharedCards cards;
  cards.go_to(P::KvAlloc);
  cards.state(kEngine).has_kv = true;
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::KvAlloc);
  cards.state(kOther) = ActorState{};  // It died, and its replacement has no weights yet.
  cards.state(kOther).life = Life::Ready;
  cards.state(kEngine).switching = SwitchAction::AllocateKv;
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::KvAlloc) << "an engine is still at it";
  cards.state(kEngine).switching.reset();
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Rollout) << "who starts meanwhile joins in Rollout";
  EXPECT_TRUE(cards.turns.allows_rollout(kEngine));
}

TEST(RoleSwitch, Transitions7And8WaitForEnginesThatAreGivenWeightsOrMemory) {
  SharedCards cards;
  cards.go_to(P::Rollout);
  cards.stage(kEngine, PolicyVersion(9));
  cards.state(kOther).switching = SwitchAction::AllocateKv;
  cards.turns.request_training(Scoring::None, {kEngine, kOther});
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::CutRoute);
  cards.state(kOther).switching.reset();
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::CutRoute);
  cards.state(kEngine).staging.reset();
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Interrupt);
}

TEST(RoleSwitch, Transitions9To11AskEveryEngineForOneThingAfterTheOther) {
  SharedCards cards;
  cards.go_to(P::Rollout);
  cards.take_asked();
  cards.turns.request_training(Scoring::None, {kEngine, kOther});
  cards.advance();
  for (const SwitchAction action :
       {SwitchAction::Interrupt, SwitchAction::FreeKv, SwitchAction::FreeWeights}) {
    EXPECT_EQ(cards.take_asked(), (Asked{{kEngine, action}, {kOther, action}}));
    cards.answer(kEngine);
    cards.advance();
    EXPECT_TRUE(cards.take_asked().empty()) << "the other has not answered " << name_of(action);
    cards.answer(kOther);
    cards.advance();
  }
  EXPECT_EQ(cards.turns.phase(), P::Onload);
  EXPECT_EQ(cards.take_asked(), (Asked{{kTrainer, SwitchAction::OnloadOptimizer}}));
}

TEST(RoleSwitch, Transitions11And12GoToScoringOnceEveryReferenceIsOnTheCards) {
  SharedCards cards;
  cards.go_to(P::Rollout);
  cards.turns.request_training(Scoring::Needed, {kEngine, kOther});
  cards.turns.scored();  // Too early: it is not that state yet.
  cards.advance();
  cards.answer_engines_until(P::OnloadReference);
  EXPECT_TRUE(cards.turns.allows_reference());
  cards.take_asked();
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::OnloadReference);
  cards.state(kReference).onboard = true;
  cards.state(kReference).switching = SwitchAction::OnloadReference;
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::OnloadReference);
  cards.state(kReference).switching.reset();
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Score);
  EXPECT_TRUE(cards.take_asked().empty()) << "the scheduler asks references one by one";
}

TEST(RoleSwitch, Transitions13To15BringTheOptimizerBackAfterTheReferences) {
  SharedCards cards;
  cards.go_to(P::Score);
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Score) << "there is something to score until it is said";
  cards.take_asked();
  cards.turns.scored();
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::OffloadReference);
  EXPECT_EQ(cards.take_asked(), (Asked{{kReference, SwitchAction::OffloadReference}}));
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::OffloadReference);
  cards.answer(kReference);
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Onload);
  EXPECT_EQ(cards.take_asked(), (Asked{{kTrainer, SwitchAction::OnloadOptimizer}}));
  EXPECT_FALSE(cards.turns.allows_training());
  cards.answer(kTrainer);
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Train);
  EXPECT_TRUE(cards.turns.allows_training());
}

TEST(RoleSwitch, Transition16RollsBackToRolloutWhenTheOptimizerDoesNotFit) {
  SharedCards cards;
  cards.go_to(P::Onload);
  cards.take_asked();
  cards.refuse("no room");
  ASSERT_TRUE(cards.try_advance());
  EXPECT_EQ(cards.turns.phase(), P::OffloadOptimizer);
  EXPECT_EQ(cards.take_asked(), (Asked{{kTrainer, SwitchAction::OffloadOptimizer}}));
  cards.go_to(P::Rollout);
}

TEST(RoleSwitch, RollbacksAreForgivenUpToTheirLimitInARow) {
  SharedCards cards;
  for (std::int32_t i = 0; i < RoleSwitch::kMaxRefusals; ++i) {
    cards.go_to(P::Onload);
    cards.refuse("no room");
    EXPECT_TRUE(cards.try_advance()) << i;
  }
  cards.go_to(P::Onload);
  cards.refuse("22 GB are missing");
  const Status status = cards.try_advance();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::OutOfMemory);
  EXPECT_NE(status.error().context.find("22 GB are missing"), std::string::npos);
}

TEST(RoleSwitch, AnUpdateBetweenTwoRollbacksStartsTheCountAgain) {
  SharedCards cards;
  for (std::int32_t i = 0; i < 3 * RoleSwitch::kMaxRefusals; ++i) {
    cards.go_to(P::Onload);
    cards.refuse("no room");
    EXPECT_TRUE(cards.try_advance()) << i;
    cards.go_to(P::Train);
  }
}

TEST(RoleSwitch, ARequestCountsOnlyInTheStateItIsFor) {
  SharedCards cards;
  for (const P phase : testing::kWholeTurn) {
    cards.go_to(phase);
    if (phase != P::Train) {
      cards.turns.request_rollout();
      cards.turns.request_scoring();
    }
    if (phase != P::Rollout)
      cards.turns.request_training(Scoring::Needed, {kEngine, kOther});
    EXPECT_EQ(cards.turns.phase(), phase) << name_of(phase);
  }
}

TEST(RoleSwitch, ScoringThatWasAskedOutsideItsStateIsNotRemembered) {
  SharedCards cards;
  cards.go_to(P::Rollout);
  cards.turns.request_training(Scoring::None, {kEngine, kOther});
  cards.advance();
  cards.turns.request_training(Scoring::Needed, {kEngine, kOther});
  cards.answer_engines_until(P::Onload);
}

TEST(RoleSwitch, NoStateAllowsTwoUsesOfTheCards) {
  SharedCards cards;
  for (const P phase : testing::kWholeTurn) {
    cards.go_to(phase);
    const RoleSwitch& t = cards.turns;
    const int uses = (t.allows_training() ? 1 : 0) + (t.allows_rollout(kEngine) ? 1 : 0) +
                     (t.allows_reference() ? 1 : 0);
    EXPECT_LE(uses, 1) << name_of(phase);
    if (phase != P::Train && phase != P::Rollout && phase != P::Score) {
      EXPECT_FALSE(t.allows_training() || t.allows_rollout(kEngine)) << name_of(phase);
    }
    if (t.allows_training() || t.allows_reference()) {
      EXPECT_FALSE(t.allows_publication(kEngine) || t.allows_kv(kEngine)) << name_of(phase);
    }
  }
}

TEST(RoleSwitch, AnEngineThatDiesHoldsNoTransitionUp) {
  for (const P phase : {P::Reshard, P::Bind, P::KvAlloc, P::Interrupt, P::FreeKv}) {
    SharedCards cards;
    cards.go_to(phase);
    cards.take_asked();
    cards.state(kOther).life = Life::Down;
    cards.obey(kEngine);
    cards.advance();
    EXPECT_NE(cards.turns.phase(), phase) << name_of(phase);
    for (const auto& [actor, action] : cards.take_asked())
      EXPECT_NE(actor, kOther) << "the dead are not asked";
  }
}

TEST(RoleSwitch, AReferenceThatDiesHoldsScoringUpNeitherBeforeNorAfter) {
  SharedCards cards;
  cards.go_to(P::OnloadReference);
  cards.state(kReference).life = Life::Down;
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Score);
  cards.turns.scored();
  cards.advance();
  EXPECT_EQ(cards.turns.phase(), P::Onload);
}

TEST(RoleSwitch, WhateverHappensTheCardsNeverHoldTwoUsesAtOnce) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    testing::RandomCards cards(seed);
    for (int i = 0; i < 1500; ++i)
      cards.step();
    EXPECT_EQ(cards.broken(), "") << "seed " << seed;
    EXPECT_GT(cards.turns_taken(), 3) << "seed " << seed;
  }
}

TEST(RoleSwitch, EnginesThatStayAreInRolloutAllTheWhile) {
  SharedCards cards;
  cards.go_to(P::Rollout);
  cards.turns.request_training(Scoring::None, {kEngine});
  for (int i = 0; i < 8 && cards.turns.phase() != P::Train; ++i) {
    cards.advance();
    EXPECT_TRUE(cards.turns.allows_rollout(kOther)) << name_of(cards.turns.phase());
    EXPECT_FALSE(cards.turns.allows_rollout(kEngine)) << name_of(cards.turns.phase());
    cards.answer(kEngine);
    cards.answer(kTrainer);
  }
  ASSERT_EQ(cards.turns.phase(), P::Train);
  EXPECT_TRUE(cards.turns.allows_training());
  EXPECT_FALSE(cards.turns.has_left(kOther));
}

TEST(RoleSwitch, Transition17TakesTheCardsOfMoreEnginesWithoutAskingTheFirstAgain) {
  SharedCards cards;
  cards.go_to(P::Rollout);
  cards.turns.request_training(Scoring::None, {kEngine});
  for (int i = 0; i < 8 && cards.turns.phase() != P::Train; ++i) {
    cards.advance();
    cards.answer(kEngine);
    cards.answer(kTrainer);
  }
  ASSERT_EQ(cards.turns.phase(), P::Train);
  cards.asked.clear();
  cards.turns.request_training(Scoring::None, {kEngine, kOther});
  for (int i = 0; i < 8 && cards.turns.phase() != P::Train; ++i) {
    cards.advance();
    cards.answer(kOther);
    cards.answer(kTrainer);
  }
  ASSERT_EQ(cards.turns.phase(), P::Train);
  EXPECT_EQ(cards.turns.leaving(), (std::vector{kEngine, kOther}));
  for (const auto& [actor, action] : cards.asked)
    EXPECT_NE(actor, kEngine);
}

}  // namespace
}  // namespace temper::orchestrator
