// The page's claims about lost card time.
#include "cli/serve/losses.hpp"

#include "orchestrator/scheduler/state/facts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace temper::cli {
namespace {

using actors::CardState;
using actors::RoleKind;

/// A run of two cards: engines, and a trainer, each with what its card did.
Live two_cards(const std::map<CardState, double>& rollout,
               const std::map<CardState, double>& trainer) {
  Live live;
  live.actors = {{"rollout-0", RoleKind::Rollout, CardState::Decode, "", 3, 4, 0},
                 {"trainer-0", RoleKind::Trainer, CardState::Train, "", 0, 0, 0}};
  live.cards = {{{0, 1}, {0}, {}, rollout}, {{1, 1}, {1}, {}, trainer}};
  live.summary.wall_s = 10;
  live.summary.cards = 2;
  for (const auto& [role, shares] :
       {std::pair{RoleKind::Rollout, rollout}, {RoleKind::Trainer, trainer}}) {
    for (const auto& [state, share] : shares) {
      if (!orchestrator::is_busy(state) && state != CardState::WeightSync)
        live.summary.waits.push_back({role, state, "x", share * 10, share / 2, 1, 3, ""});
      live.summary.utilization.states[state] += share / 2;
    }
  }
  return live;
}

/// What the busiest cards were occupied with is what a run takes, whatever else is changed.
TEST(Losses, NoGainIsClaimedAboveWhatTheBusiestCardsAllow) {
  using S = CardState;
  struct Case {
    std::map<S, double> rollout, trainer;
    bool limits;
    double most;  ///< Of every wait of the engines.
  };
  const Case cases[] = {
      {{{S::Decode, 0.5}, {S::WaitQuota, 0.5}},
       {{S::Train, 0.88}, {S::WaitData, 0.12}},
       true,
       1 / 0.88 - 1},
      {{{S::Decode, 0.5}, {S::WaitQuota, 0.5}}, {{S::Train, 1.0}}, true, 0},
      {{{S::Decode, 0.5}, {S::WaitQuota, 0.5}}, {{S::Train, 0.9}, {S::WeightSync, 0.1}}, true, 0},
      {{{S::Decode, 0.5}, {S::WaitData, 0.5}},
       {{S::Train, 0.6}, {S::Reward, 0.3}, {S::Idle, 0.1}},
       true,
       1 / 0.9 - 1},
      {{{S::Decode, 0.5}, {S::WaitWeights, 0.5}},
       {{S::Train, 0.81}, {S::WaitData, 0.19}},
       true,
       1 / 0.81 - 1},
      {{{S::Decode, 0.5}, {S::WaitQuota, 0.5}},
       {{S::Train, 0.79}, {S::WaitData, 0.21}},
       false,
       1 / 0.79 - 1},
      {{{S::Decode, 0.5}, {S::WaitQuota, 0.5}},
       {{S::Train, 0.5}, {S::WaitData, 0.5}},
       false,
       1 / 0.75 - 1},
      {{{S::Decode, 0.9}, {S::WaitQuota, 0.1}},
       {{S::Train, 0.5}, {S::WaitData, 0.5}},
       true,
       1 / 0.95 - 1},
      // The start is no time in which the trainer had room.
      {{{S::Decode, 0.3}, {S::WaitQuota, 0.3}, {S::Down, 0.4}},
       {{S::Train, 0.55}, {S::WaitData, 0.05}, {S::Down, 0.4}},
       true,
       1 / 0.95 - 1},
      {{{S::Evaluate, 0.2}, {S::WaitQuota, 0.8}},
       {{S::Train, 0.2}, {S::WaitData, 0.8}},
       false,
       1 / 0.6 - 1},
  };
  for (const Case& c : cases) {
    const Losses found = rank_losses(two_cards(c.rollout, c.trainer), {"run", {}, {}});
    ASSERT_TRUE(found.busiest);
    EXPECT_EQ(found.busiest->limits, c.limits) << found.busiest->headline;
    bool any = false;
    for (const Loss& loss : found.losses) {
      EXPECT_LE(loss.most_gain, 1 / (1 - loss.share) - 1 + 1e-9) << loss.what;
      if (loss.what.starts_with("rollout: wait")) {
        EXPECT_NEAR(loss.most_gain, c.most, 1e-9) << loss.what << ", " << found.busiest->headline;
        any = true;
      }
    }
    EXPECT_TRUE(any);
  }
}

TEST(Losses, WhatWaitsForTheBottleneckIsNotToldToBeginSooner) {
  using S = CardState;
  const auto first_of = [](double train) {
    return rank_losses(two_cards({{S::Decode, 0.5}, {S::WaitQuota, 0.5}},
                                 {{S::Train, train}, {S::WaitData, 1 - train}}),
                       {"run", {}, {}})
        .losses.at(0);
  };
  EXPECT_NE(first_of(0.6).command.find("staleness.bound=1"), std::string::npos);
  EXPECT_EQ(first_of(0.9).command, "");
}

/// Losses of which each has a change that might reduce it.
struct AdvisedLoss {
  const char* name;
  std::map<CardState, double> rollout, trainer;
  bool simulated;
  std::string_view what;  ///< How the loss begins.
  std::vector<std::string> changes;
};
using S = CardState;
const std::vector<AdvisedLoss>& advised_losses() {
  static const std::vector<AdvisedLoss> all{
      {"Throttled",
       {{S::Decode, 0.5}, {S::WaitQuota, 0.5}},
       {{S::Train, 0.6}},
       false,
       "rollout: wait-quota",
       {"staleness.bound=1"}},
      {"ThrottledInSimulation",
       {{S::Decode, 0.5}, {S::WaitQuota, 0.5}},
       {{S::Train, 0.6}},
       true,
       "rollout: wait-quota",
       {"staleness.bound=1"}},
      {"EnginesWithoutGroups",
       {{S::Decode, 0.5}, {S::WaitData, 0.5}},
       {{S::Train, 0.6}},
       false,
       "rollout: wait-data",
       {"staleness.bound=1"}},
      {"TrainerWithoutGroups",
       {{S::Decode, 0.7}},
       {{S::Train, 0.4}, {S::WaitData, 0.6}},
       false,
       "trainer: wait-data",
       {"staleness.bound=1", "placement.mode=hybrid"}},
      {"TrainerBehindTheRollout",  // the bottleneck is busy: nothing to begin sooner
       {{S::Decode, 0.95}},
       {{S::Train, 0.4}, {S::WaitData, 0.6}},
       false,
       "trainer: wait-data",
       {}},
      {"TrainerBehindTheRolloutInSimulation",
       {{S::Decode, 0.95}},
       {{S::Train, 0.4}, {S::WaitData, 0.6}},
       true,
       "trainer: wait-data",
       {"tune"}},
      {"TrainerWithoutGroupsInSimulation",
       {{S::Decode, 0.7}},
       {{S::Train, 0.4}, {S::WaitData, 0.6}},
       true,
       "trainer: wait-data",
       {"tune"}},
      {"Switches",
       {{S::Decode, 0.7}},
       {{S::Train, 0.4}, {S::Switch, 0.3}},
       false,
       "switch",
       {"placement.mode=separate"}},
      {"SwitchesInSimulation",
       {{S::Decode, 0.7}},
       {{S::Train, 0.4}, {S::Switch, 0.3}},
       true,
       "switch",
       {"tune"}},
      {"Weights",
       {{S::Decode, 0.5}, {S::WaitWeights, 0.5}},
       {{S::Train, 0.6}},
       true,
       "rollout: wait-weights",
       {"tune"}},
      {"WeightsOutsideASimulation",
       {{S::Decode, 0.5}, {S::WaitWeights, 0.5}},
       {{S::Train, 0.6}},
       false,
       "rollout: wait-weights",
       {}},
      {"Publication",
       {{S::Decode, 0.5}, {S::WeightSync, 0.4}},
       {{S::Train, 0.6}},
       true,
       "weight-sync",
       {"tune"}}};
  return all;
}

class AnAdvisedLoss : public testing::TestWithParam<AdvisedLoss> {
 protected:
  Loss with(std::map<std::string, std::string> settings,
            std::vector<orchestrator::Prediction> predictions) const {
    Live live = two_cards(GetParam().rollout, GetParam().trainer);
    live.summary.simulated = GetParam().simulated;
    const Losses found = rank_losses(live, {"run", std::move(settings), std::move(predictions)});
    for (const Loss& loss : found.losses) {
      if (loss.what.starts_with(GetParam().what))
        return loss;
    }
    ADD_FAILURE() << "no such loss";
    return {};
  }
  /// Whether the text tells to make this change.
  static bool advises(const Loss& loss, const std::string& change) {
    return loss.advice.find("Use " + (change == "tune" ? "the best" : change)) != std::string::npos;
  }
};
INSTANTIATE_TEST_SUITE_P(Each,
                         AnAdvisedLoss,
                         testing::ValuesIn(advised_losses()),
                         [](const auto& p) { return std::string(p.param.name); });

TEST_P(AnAdvisedLoss, NamesNoSettingBeforeItsPrediction) {
  const Loss loss = with({}, {});
  EXPECT_FALSE(loss.advice.empty());
  EXPECT_EQ(loss.advice.find('='), std::string::npos) << loss.advice;
  EXPECT_EQ(loss.advice.find("Use "), std::string::npos) << loss.advice;
  EXPECT_EQ(loss.command.empty(), GetParam().changes.empty()) << loss.command;
}

TEST_P(AnAdvisedLoss, NamesAChangeOnlyIfItsPredictionIsAGain) {
  for (const std::string& change : GetParam().changes) {
    EXPECT_TRUE(advises(with({}, {{change, 0.2, 0.05}}), change));
    for (const auto& [gain, error] : {std::pair{0.04, 0.05}, {0.0, 0.0}, {-0.3, 0.05}}) {
      const Loss loss = with({}, {{change, gain, error}});
      EXPECT_FALSE(advises(loss, change)) << gain << ": " << loss.advice;
    }
    EXPECT_FALSE(advises(with({}, {{"staleness.bound=9", 0.2, 0.05}}), change));
  }
}

TEST_P(AnAdvisedLoss, NamesNoChangeThatTheRunHasAlready) {
  for (const std::string& change : GetParam().changes) {
    const std::size_t at = change.find('=');
    if (at == std::string::npos)
      continue;
    const Loss loss = with({{change.substr(0, at), change.substr(at + 1)}}, {{change, 0.2, 0.05}});
    EXPECT_FALSE(advises(loss, change)) << loss.advice;
    EXPECT_EQ(loss.command.find(change), std::string::npos) << loss.command;
  }
}

TEST_P(AnAdvisedLoss, AsksForTheNextChangeIfTheFirstIsNoGain) {
  const auto& changes = GetParam().changes;
  if (changes.size() < 2)
    return;
  EXPECT_NE(with({}, {}).command.find(changes[0]), std::string::npos);
  EXPECT_NE(with({}, {{changes[0], 0, 0.1}}).command.find(changes[1]), std::string::npos);
  EXPECT_TRUE(advises(with({}, {{changes[1], 0.2, 0.1}}), changes[1]));
}

TEST(Losses, OldKeysAndValuesAreNotWhatAnEngineWithoutWorkWaitsFor) {
  const Live live = two_cards({{S::Decode, 0.5}, {S::WaitWeights, 0.5}}, {{S::Train, 0.2}});
  for (const Loss& loss : rank_losses(live, {"run", {}, {}}).losses)
    EXPECT_EQ(loss.advice.find("keep_kv"), std::string::npos) << loss.advice;
}

TEST(Losses, CardsWithLittleToDoInTheTailOfABatchAreToldOfIt) {
  Live live =
      two_cards({{S::Decode, 0.9}, {S::WaitQuota, 0.1}}, {{S::Train, 0.5}, {S::WaitData, 0.5}});
  const auto told = [&](std::string_view words) {
    const Losses losses = rank_losses(live, {});
    const auto& waits = losses.losses;
    const auto quota = std::ranges::find(waits, S::WaitQuota, &Loss::state);
    return std::pair(quota->advice.find(words) != std::string::npos,
                     losses.busiest->advice.find(words) != std::string::npos);
  };
  EXPECT_EQ(told("last responses of"), std::pair(false, false));
  for (auto& wait : live.summary.waits)
    wait.tail = true;
  live.summary.tail.decode_s = 4;
  EXPECT_EQ(told("last responses of"), std::pair(true, true));
  EXPECT_NE(rank_losses(live, {}).busiest->advice.find("20.0 %"), std::string::npos);
}

TEST(Losses, AGroupThatIsHeldBackForAFedTrainerIsNoMatterOfTheBound) {
  Live live;
  live.summary.wall_s = 10;
  live.summary.cards = 1;
  const auto advice_on = [&](orchestrator::WaitKind cause) {
    live.summary.waits = {{RoleKind::Rollout, CardState::WaitQuota, "", 5, 0.5, 1, 3, "", cause}};
    return rank_losses(live, {"run", {}, {}}).losses.at(0);
  };
  EXPECT_NE(advice_on(orchestrator::WaitKind::StalenessBound).command.find("staleness.bound="),
            std::string::npos);
  const Loss held = advice_on(orchestrator::WaitKind::TrainerDemand);
  EXPECT_EQ(held.command.find("staleness.bound="), std::string::npos) << held.command;
  EXPECT_NE(held.advice.find("just_in_time"), std::string::npos) << held.advice;
}

}  // namespace
}  // namespace temper::cli
