// Compares every loss and derivative with tests/support/reference_loss.hpp.
#include "trainer/policy_loss.hpp"

#include "core/random.hpp"
#include "tests/support/reference_loss.hpp"
#include "trainer/algorithm_table.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace temper::trainer {
namespace {

using tests::ReferenceResponse;

/// Log-ratios of about `spread` between any two policies.
ReferenceResponse random_response(Random& random, double spread) {
  ReferenceResponse r;
  const std::size_t length = 1 + random.below(7);
  for (std::size_t t = 0; t < length; ++t) {
    r.behaviour.push_back(-0.1 - 3 * random.uniform());
    r.proximal.push_back(r.behaviour[t] + spread * random.normal());
    r.current.push_back(r.proximal[t] + spread * random.normal());
    r.reference.push_back(r.current[t] + 0.3 * random.normal());
  }
  r.advantage = random.normal();
  return r;
}

std::vector<TokenLoss> loss_of(const ReferenceResponse& r, const Algorithm& a) {
  std::vector<TokenLoss> out(r.current.size());
  response_loss({r.current, r.behaviour, r.proximal, r.reference, r.advantage}, a, out);
  return out;
}

/// Cases that the random responses of one algorithm covered.
struct Met {
  int up = 0, down = 0, free = 0, capped = 0, checked = 0;
};

void check(const ReferenceResponse& r, const Algorithm& a, Met& met) {
  if (tests::near_a_bend(r, a))
    return;
  const auto out = loss_of(r, a);
  const auto derivatives = tests::reference_derivatives(r, a);
  for (std::size_t t = 0; t < out.size(); ++t) {
    const double loss = tests::reference_token_loss(r, r.current, t, a);
    ASSERT_NEAR(out[t].loss, loss, 1e-9 * (1 + std::abs(loss)));
    ASSERT_NEAR(out[t].d_logprob, derivatives[t], 1e-7 * (1 + std::abs(derivatives[t])));
    ++(!out[t].clipped ? met.free : r.advantage > 0 ? met.up : met.down);
    met.capped += out[t].capped ? 1 : 0;
    ++met.checked;
  }
}

Met check_many(const Algorithm& a) {
  Met met;
  Random random(1, "losses");
  // About the size of the clip, so that both sides of it are covered.
  const double spread = a.ratio == RatioLevel::Sequence ? 3 * a.clip_high : 0.5;
  for (int i = 0; i < 400; ++i) {
    check(random_response(random, random.chance(0.2) ? 1.5 : spread), a, met);
    if (testing::Test::HasFatalFailure())
      break;
  }
  return met;
}

TEST(PolicyLoss, MatchesTheReferenceForEveryRow) {
  for (const AlgorithmRow& row : algorithm_table()) {
    SCOPED_TRACE(name_of(row.name));
    Algorithm a = row.columns;
    a.kl = 0.3;
    const Met met = check_many(a);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_GT(met.checked, 1000);
    EXPECT_GT(met.free, 50);
    if (a.objective == Objective::Reinforce)
      continue;
    EXPECT_GT(met.up, 20) << "clipped with a positive advantage";
    EXPECT_GT(met.down, 20) << "clipped with a negative advantage";
  }
}

/// Every kind of behaviour weight, below, within and above its range.
void check_weights(Algorithm a) {
  a.behaviour_weight_floor = 0.8;
  a.behaviour_weight_cap = 1.3;
  const bool weighs = a.objective == Objective::Decoupled || a.objective == Objective::Tis;
  for (const WeightMode mode : {WeightMode::Clamp, WeightMode::Mask}) {
    for (const auto& [level, name] : EnumNames<WeightLevel>::value) {
      SCOPED_TRACE(fmt::format("{} {}", name_of(mode), name));
      a.behaviour_weight_mode = mode;
      a.behaviour_weight_level = level;
      const Met met = check_many(a);
      if (testing::Test::HasFatalFailure())
        return;
      EXPECT_EQ(met.capped > 20, weighs);
      EXPECT_GT(met.checked - met.capped, 20);
    }
  }
}

TEST(PolicyLoss, MatchesTheReferenceForEveryCombinationOfColumns) {
  for (const auto& [objective, name] : EnumNames<Objective>::value) {
    for (const RatioLevel level : {RatioLevel::Token, RatioLevel::Sequence}) {
      Algorithm a;
      a.objective = objective;
      a.ratio = level;
      check_weights(a);
      ASSERT_FALSE(HasFatalFailure()) << name << ' ' << name_of(level);
    }
  }
}

TEST(PolicyLoss, ClipsEachSideByTheSignOfTheAdvantage) {
  Algorithm a;
  a.clip_low = 0.2;
  a.clip_high = 0.3;
  const auto at = [&](double ratio, double advantage) {
    return loss_of({{std::log(ratio)}, {0}, {}, {}, advantage}, a)[0];
  };
  EXPECT_NEAR(at(1.5, 1).loss, -1.3, 1e-12);  // Already clipped: no gradient.
  EXPECT_EQ(at(1.5, 1).d_logprob, 0);
  EXPECT_NEAR(at(1.5, -1).loss, 1.5, 1e-12);  // Must decrease: full gradient.
  EXPECT_NEAR(at(1.5, -1).d_logprob, 1.5, 1e-12);
  EXPECT_NEAR(at(0.5, -1).loss, 0.8, 1e-12);
  EXPECT_TRUE(at(0.5, -1).clipped);
  EXPECT_NEAR(at(0.5, 1).loss, -0.5, 1e-12);
  EXPECT_NEAR(at(0.5, 1).d_logprob, -0.5, 1e-12);
}

TEST(PolicyLoss, DecoupledEqualsClipForFreshSamples) {
  Random random(2, "fresh");
  Algorithm clip, decoupled;
  decoupled.objective = Objective::Decoupled;
  for (int i = 0; i < 50; ++i) {
    ReferenceResponse r = random_response(random, 0.4);
    r.proximal = r.behaviour;
    const auto a = loss_of(r, clip), b = loss_of(r, decoupled);
    for (std::size_t t = 0; t < a.size(); ++t) {
      EXPECT_EQ(a[t].d_logprob, b[t].d_logprob);
      EXPECT_EQ(b[t].weight, 1);
    }
  }
}

TEST(PolicyLoss, ClampsOrMasksAWeightAboveItsCap) {
  // Proximal over behaviour: exp(2) = 7.4. Advantage 2; ratio to the proximal policy 1.
  const ReferenceResponse r{{-1}, {-3}, {-1}, {}, 2};
  Algorithm a;
  a.objective = Objective::Decoupled;
  a.behaviour_weight_mode = WeightMode::Clamp;
  EXPECT_NEAR(loss_of(r, a)[0].loss, -5.0 * 2, 1e-12);
  a.behaviour_weight_mode = WeightMode::Mask;
  EXPECT_EQ(loss_of(r, a)[0].loss, 0);
  EXPECT_EQ(loss_of(r, a)[0].d_logprob, 0);
  EXPECT_TRUE(loss_of(r, a)[0].capped);
  a.objective = Objective::Tis;
  EXPECT_NEAR(loss_of(r, a)[0].loss, -5.0 * 2, 1e-12);
  a.behaviour_weight_cap = 10;
  EXPECT_NEAR(loss_of(r, a)[0].loss, -std::exp(2) * 2, 1e-12);
}

TEST(PolicyLoss, MatchesTheReferenceWithATeacher) {
  for (const auto& [objective, name] : EnumNames<Objective>::value) {
    for (const RatioLevel level : {RatioLevel::Token, RatioLevel::Sequence}) {
      SCOPED_TRACE(fmt::format("{} {}", name, name_of(level)));
      Algorithm a;
      a.objective = objective;
      a.ratio = level;
      a.distillation = 0.8;
      a.reward_weight = 0.5;
      const Met met = check_many(a);
      ASSERT_FALSE(HasFatalFailure());
      EXPECT_GT(met.free, 50);
    }
  }
}

TEST(PolicyLoss, ATeacherRaisesWhatItPrefersToTheSampler) {
  // The teacher gives the first token twice the sampler's probability, the second half of it.
  const double two = std::log(2);
  const ReferenceResponse r{{-2, -2}, {-2, -2}, {}, {-2 + two, -2 - two}, 5};
  const auto losses = loss_of(r, algorithm_row(AlgorithmName::Opd).columns);
  EXPECT_NEAR(losses[0].d_logprob, -two, 1e-12);
  EXPECT_NEAR(losses[1].d_logprob, two, 1e-12);
  EXPECT_NEAR(losses[0].kl, 2 - 1 - two, 1e-12) << "reported without a weight in the loss";
}

TEST(PolicyLoss, ReportsTheKlToAReferenceThatTheLossDoesNotUse) {
  const double two = std::log(2);
  const ReferenceResponse scored{{-2, -2}, {-2, -2}, {}, {-2 + two, -2}, 5};
  ReferenceResponse alone = scored;
  alone.reference.clear();
  const Algorithm a = algorithm_row(AlgorithmName::Grpo).columns;
  ASSERT_FALSE(needs_reference(a));
  const auto losses = loss_of(scored, a), without = loss_of(alone, a);
  EXPECT_NEAR(losses[0].kl, 2 - 1 - two, 1e-12);
  EXPECT_EQ(losses[1].kl, 0);
  EXPECT_EQ(without[0].kl, 0);
  EXPECT_EQ(losses[0].loss, without[0].loss);
  EXPECT_EQ(losses[0].d_logprob, without[0].d_logprob);
}

TEST(PolicyLoss, MasksATokenWhoseWeightIsOutsideItsRangeOnEitherSide) {
  // Proximal over behaviour: exp(-1) = 0.37, 1 and exp(2) = 7.4. Ratio to the proximal policy 1.
  const ReferenceResponse r{{-3, -2, -1}, {-2, -2, -3}, {-3, -2, -1}, {}, 2};
  const auto losses = loss_of(r, algorithm_row(AlgorithmName::IcePop).columns);
  EXPECT_EQ(losses[0].loss, 0);
  EXPECT_NEAR(losses[1].loss, -2, 1e-12);
  EXPECT_EQ(losses[2].loss, 0);
  EXPECT_TRUE(losses[0].capped && !losses[1].capped && losses[2].capped);
}

TEST(PolicyLoss, MasksAResponseByTheProductOrTheMeanOfItsRatios) {
  // Ratios exp(0.5), exp(0.5) and exp(-0.4): product exp(0.6) = 1.82, geometric mean exp(0.2).
  const ReferenceResponse r{{-1, -1, -2}, {-1.5, -1.5, -1.6}, {-1, -1, -2}, {}, 1};
  Algorithm a = algorithm_row(AlgorithmName::SeqMis).columns;
  for (const TokenLoss& token : loss_of(r, a))
    EXPECT_NEAR(token.loss, -std::exp(0.6), 1e-12);
  a.behaviour_weight_cap = 1.8;
  for (const TokenLoss& token : loss_of(r, a))
    EXPECT_EQ(token.loss, 0);
  a = algorithm_row(AlgorithmName::GeoRs).columns;
  for (const TokenLoss& token : loss_of(r, a))
    EXPECT_EQ(token.loss, 0);
  a.behaviour_weight_cap = 1.25;
  for (const TokenLoss& token : loss_of(r, a))
    EXPECT_NEAR(token.loss, -std::exp(0.2), 1e-12);
}

TEST(TokenWeight, GivesTheMeanOfItsName) {
  // A minibatch of two responses, 2 and 6 tokens; a response may have 10.
  const auto sum = [](Averaging average, double short_loss, double long_loss) {
    Algorithm a;
    a.average = average;
    a.longest_response = Tokens(10);
    return (2 * short_loss * token_share(a, 2) + 6 * long_loss * token_share(a, 6)) /
           shares(a, 8, 2);
  };
  EXPECT_NEAR(sum(Averaging::Token, 1, 0), 2.0 / 8, 1e-12);
  EXPECT_NEAR(sum(Averaging::Token, 0, 1), 6.0 / 8, 1e-12);
  EXPECT_NEAR(sum(Averaging::Sequence, 1, 0), 1.0 / 2, 1e-12);
  EXPECT_NEAR(sum(Averaging::Sequence, 0, 1), 1.0 / 2, 1e-12);
  EXPECT_NEAR(sum(Averaging::Constant, 1, 0), 2.0 / 20, 1e-12);
  EXPECT_NEAR(sum(Averaging::Constant, 0, 1), 6.0 / 20, 1e-12);
}

}  // namespace
}  // namespace temper::trainer
