#include "orchestrator/run/live/card_memory.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using actors::RoleKind;

Bytes mib(std::int64_t n) {
  return Bytes(n << 20);
}

/// Two cards: an engine on both, a trainer on the second.
const std::vector<ActorSpec> kActors{
    {"rollout-0", RoleKind::Rollout, {CardId(0), CardId(1)}, 8},
    {"trainer", RoleKind::Trainer, {CardId(1)}, 0},
};
constexpr ActorId kGenerator(0), kLearner(1);

TEST(CardMemory, AnActorOfSeveralCardsCountsEvenlyOnEach) {
  CardMemory memory{Bytes(0)};
  EXPECT_FALSE(memory.note(kActors, kGenerator, mib(100)));
  EXPECT_FALSE(memory.note(kActors, kLearner, mib(30)));
  EXPECT_EQ(memory.peaks(), "card 0 50.0 MiB, card 1 80.0 MiB");
}

TEST(CardMemory, WhatAProcessGaveBackMakesRoomAndTheMostIsRemembered) {
  CardMemory memory{mib(100)};
  EXPECT_FALSE(memory.note(kActors, kGenerator, mib(160)));
  EXPECT_FALSE(memory.note(kActors, kGenerator, mib(40)));
  EXPECT_FALSE(memory.note(kActors, kLearner, mib(75)));
  EXPECT_EQ(memory.peaks(), "card 0 80.0 MiB, card 1 95.0 MiB");
}

TEST(CardMemory, ACardThatHoldsMoreThanItMaySaysWhoHoldsIt) {
  CardMemory memory{mib(100)};
  EXPECT_FALSE(memory.note(kActors, kGenerator, mib(60)));
  EXPECT_EQ(memory.note(kActors, kLearner, mib(71)),
            "the processes of card 1 hold 101.0 MiB of the 100.0 MiB that it may "
            "(placement.card_memory): rollout-0 30.0 MiB, trainer 71.0 MiB");
}

}  // namespace
}  // namespace temper::orchestrator
