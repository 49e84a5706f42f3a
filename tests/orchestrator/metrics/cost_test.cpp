#include "orchestrator/metrics/cost.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using actors::CardState;
using actors::RoleKind;

constexpr double kHour = 3600;

ActorSpec actor(RoleKind role, std::vector<std::int32_t> cards) {
  ActorSpec spec;
  spec.role = role;
  for (const std::int32_t card : cards)
    spec.cards.emplace_back(card);
  return spec;
}

/// Two hours of three cards, one of which only decodes, that train a million tokens.
CardUse two_hours() {
  return {2 * kHour,
          {{CardState::Train, 0.5}, {CardState::Decode, 0.25}, {CardState::Idle, 0.25}},
          1e6};
}

TEST(Cost, IsUnknownWithoutPriceAndPower) {
  EXPECT_FALSE(cost_of({}, {3, 1}, two_hours()));
}

TEST(Cost, EveryCardIsPaidForTheWholeWallTime) {
  const auto cost = cost_of({.card_hour = 4}, {3, 1}, two_hours());
  ASSERT_TRUE(cost);
  EXPECT_DOUBLE_EQ(cost->price.value(), 3 * 2 * 4);
  EXPECT_DOUBLE_EQ(cost->tokens_per_price.value(), 1e6 / 24);
  EXPECT_FALSE(cost->kwh);
}

TEST(Cost, CardsThatOnlyRolloutHasCanBeCheaper) {
  const auto cost = cost_of({.card_hour = 4, .rollout_card_hour = 1}, {3, 1}, two_hours());
  EXPECT_DOUBLE_EQ(cost.value().price.value(), 2 * (2 * 4 + 1));
}

TEST(Cost, ACardThatATrainerSharesIsNotOnlyForRollout) {
  const std::vector<ActorSpec> actors = {actor(RoleKind::Rollout, {0, 1}),
                                         actor(RoleKind::Rollout, {1}),
                                         actor(RoleKind::Rollout, {2}),
                                         actor(RoleKind::Trainer, {2, 3}),
                                         actor(RoleKind::Reward, {})};
  const PaidCards cards = paid_cards(actors);
  EXPECT_EQ(cards.all, 4U);
  EXPECT_EQ(cards.rollout_only, 2U);
}

TEST(Cost, EnergyIsTheCardTimeInEachStateTimesItsPower) {
  const CostSection powers{.idle_watts = 100, .busy_watts = 400, .train_watts = 600};
  const auto cost = cost_of(powers, {3, 1}, two_hours());
  ASSERT_TRUE(cost);
  EXPECT_DOUBLE_EQ(cost->kwh.value(), 2 * 3 * (0.5 * 600 + 0.25 * 400 + 0.25 * 100) / 1000);
  EXPECT_DOUBLE_EQ(cost->tokens_per_kwh.value(), 1e6 / *cost->kwh);
  EXPECT_FALSE(cost->price);
}

TEST(Cost, ARunWithoutTimeHasNoTokensPerPrice) {
  const auto cost = cost_of({.card_hour = 4}, {3, 0}, {});
  EXPECT_EQ(cost.value().price.value(), 0);
  EXPECT_FALSE(cost.value().tokens_per_price);
}

}  // namespace
}  // namespace temper::orchestrator
