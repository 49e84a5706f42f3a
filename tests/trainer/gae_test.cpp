// Advantages and returns in closed form, and compared with sums that follow the definition.
#include "trainer/gae.hpp"

#include "core/random.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::trainer {
namespace {

/// A sample with this many tokens, all sampled.
TrainSample sample(std::size_t tokens, double reward) {
  TrainSample s;
  s.response.assign(tokens, 2);
  s.behaviour_logprobs.assign(tokens, -1.0F);
  s.reward = reward;
  return s;
}

Algorithm with_critic(const CriticConfig& critic = {}) {
  Algorithm a;
  a.advantage_mean = AdvantageMean::Critic;
  a.advantage_std = AdvantageStd::None;
  a.critic = critic;
  return a;
}

CriticConfig critic_of(double gae_lambda, double discount) {
  CriticConfig c;
  c.gae_lambda = gae_lambda;
  c.discount = discount;
  return c;
}

struct Case {
  std::vector<double> rewards, values;
};

Case random_case(Random& random) {
  Case c;
  for (std::size_t t = 0, n = 1 + random.below(12); t < n; ++t) {
    c.rewards.push_back(random.normal());
    c.values.push_back(random.normal());
  }
  return c;
}

TEST(Gae, WithLambdaOneIsReturnMinusValue) {
  Random random(1, "gae");
  for (int round = 0; round < 50; ++round) {
    const Case c = random_case(random);
    const TokenEstimates e = gae(c.rewards, c.values, critic_of(1, 0.9));
    for (std::size_t t = 0; t < c.rewards.size(); ++t) {
      double future = 0;
      for (std::size_t k = t; k < c.rewards.size(); ++k)
        future += std::pow(0.9, static_cast<double>(k - t)) * c.rewards[k];
      ASSERT_NEAR(e.advantages[t], future - c.values[t], 1e-12);
      ASSERT_NEAR(e.returns[t], future, 1e-12);
    }
  }
}

TEST(Gae, WithLambdaZeroIsTheTemporalDifferenceOfOneToken) {
  Random random(2, "gae");
  for (int round = 0; round < 50; ++round) {
    const Case c = random_case(random);
    const TokenEstimates e = gae(c.rewards, c.values, critic_of(0, 0.9));
    for (std::size_t t = 0; t < c.rewards.size(); ++t) {
      const double after = t + 1 < c.values.size() ? c.values[t + 1] : 0;
      ASSERT_NEAR(e.advantages[t], c.rewards[t] + 0.9 * after - c.values[t], 1e-12);
    }
  }
}

TEST(Gae, IsTheWeightedMeanOfTheAdvantagesOfEveryHorizon) {
  // A(t) = (1 - l) sum over n of l^(n-1) A_n(t), with the rest of the weight on the whole response,
  // where A_n sums n discounted rewards and the discounted value after them (1506.02438).
  constexpr double kLambda = 0.7, kDiscount = 0.95;
  Random random(3, "gae");
  for (int round = 0; round < 50; ++round) {
    const Case c = random_case(random);
    const std::size_t size = c.rewards.size();
    const TokenEstimates e = gae(c.rewards, c.values, critic_of(kLambda, kDiscount));
    for (std::size_t t = 0; t < size; ++t) {
      double expected = 0, sum = 0, weight = 1, discount = 1;
      for (std::size_t n = 1; n <= size - t; ++n) {
        sum += discount * c.rewards[t + n - 1];
        discount *= kDiscount;
        const bool whole = t + n == size;
        const double horizon = sum + (whole ? 0 : discount * c.values[t + n]) - c.values[t];
        expected += (whole ? weight : weight * (1 - kLambda)) * horizon;
        weight *= kLambda;
      }
      ASSERT_NEAR(e.advantages[t], expected, 1e-12);
      ASSERT_NEAR(e.returns[t], expected + c.values[t], 1e-12);
    }
  }
}

TEST(TokenRewards, AreTheRewardOfTheResponseAtItsLastSampledToken) {
  TrainSample s = sample(4, 2);
  EXPECT_EQ(token_rewards(s, with_critic()), (std::vector<double>{0, 0, 0, 2}));
  s.mask = {1, 1, 0, 0};
  EXPECT_EQ(token_rewards(s, with_critic()), (std::vector<double>{0, 2}));
  s.mask = {0, 0, 0, 0};
  EXPECT_TRUE(token_rewards(s, with_critic()).empty());
}

TEST(TokenRewards, OfAnEnvironmentCountAtTheirTokenAndAreNotCountedTwice) {
  TrainSample s = sample(5, 3);  // 1.75 of it from the environment.
  s.token_rewards = {0.5F, 0.25F, 0, 1, 0};
  EXPECT_EQ(token_rewards(s, with_critic()), (std::vector<double>{0.5, 0.25, 0, 1, 1.25}));
  s.mask = {0, 1, 0, 0, 1};  // At the token before; those before the first, at the first.
  EXPECT_EQ(token_rewards(s, with_critic()), (std::vector<double>{0.5 + 0.25 + 1, 1.25}));
}

TEST(TokenRewards, SubtractTheKlOfEachToken) {
  TrainSample s = sample(3, 1);
  s.behaviour_logprobs = {-1, -0.5F, -2};
  s.reference_logprobs = {-1.5F, -0.5F, -1};
  CriticConfig critic;
  critic.kl = 0.5;
  const auto found = token_rewards(s, with_critic(critic));
  EXPECT_EQ(found, (std::vector<double>{-0.25, 0, 1 + 0.5}));
}

TEST(TokenRewards, ContainTheLengthPenalty) {
  Algorithm a = with_critic();
  a.overlong_buffer = Tokens(2);
  a.longest_response = Tokens(4);
  EXPECT_EQ(token_rewards(sample(3, 1), a).back(), 0.5);
}

TEST(TokenEstimates, AreWhitenedOverAllTokensOfTheBatch) {
  std::vector<TrainSample> batch{sample(3, 1), sample(1, 0), sample(2, 0.5)};
  Algorithm a = with_critic();
  const std::vector<std::vector<double>> values{{0.1, 0.4, 0.2}, {0.3}, {0, 0.7}};
  const auto plain = token_estimates(batch, values, a);
  a.advantage_std = AdvantageStd::Batch;
  a.advantage_epsilon = 0;
  const auto white = token_estimates(batch, values, a);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    EXPECT_EQ(white[i].returns, plain[i].returns) << "the critic's targets are not whitened";
    for (const double x : white[i].advantages) {
      sum += x;
      squares += x * x;
    }
  }
  EXPECT_NEAR(sum, 0, 1e-12);
  EXPECT_NEAR(squares / 6, 1, 1e-12);
  // One order: the largest stays the largest.
  EXPECT_GT(plain[0].advantages[1], plain[1].advantages[0]);
  EXPECT_GT(white[0].advantages[1], white[1].advantages[0]);
}

TEST(TokenEstimates, OfEqualAdvantagesAreZero) {
  const std::vector<TrainSample> batch{sample(1, 1), sample(1, 1)};
  Algorithm a = with_critic();
  a.advantage_std = AdvantageStd::Batch;
  a.advantage_epsilon = 0;
  for (const TokenEstimates& e : token_estimates(batch, {{0}, {0}}, a))
    EXPECT_EQ(e.advantages, std::vector<double>{0});
}

TEST(ValueLoss, IsTheLargerOfTheClippedAndTheUnclippedOne) {
  CriticConfig clipped;
  clipped.value_clip = 0.2;
  const auto near = value_loss(1.1, 1, 2, clipped);
  EXPECT_NEAR(near.loss, 0.405, 1e-12);
  EXPECT_NEAR(near.d_value, -0.9, 1e-12);
  EXPECT_FALSE(near.clipped);
  // Has moved 0.5 towards its return: no further gradient. (1.2 - 2)^2 / 2 = 0.32.
  const auto far = value_loss(1.5, 1, 2, clipped);
  EXPECT_NEAR(far.loss, 0.32, 1e-12);
  EXPECT_EQ(far.d_value, 0);
  EXPECT_TRUE(far.clipped);
  // Has moved away from it: the full gradient back.
  const auto away = value_loss(0.5, 1, 2, clipped);
  EXPECT_NEAR(away.loss, 1.125, 1e-12);
  EXPECT_NEAR(away.d_value, -1.5, 1e-12);
  EXPECT_FALSE(away.clipped);
  EXPECT_NEAR(value_loss(1.5, 1, 2, CriticConfig()).loss, 0.125, 1e-12);
}

TEST(ExplainedVariance, IsOneForAPerfectCriticAndZeroForAConstantOne) {
  const auto of = [](std::vector<double> returns, std::vector<double> values) {
    const TokenEstimates one{{}, std::move(returns), std::move(values)};
    return explained_variance(std::span(&one, 1));
  };
  EXPECT_NEAR(of({1, 2, 4}, {1, 2, 4}), 1, 1e-12);
  EXPECT_NEAR(of({1, 2, 4}, {3, 3, 3}), 0, 1e-12);
  EXPECT_NEAR(of({0, 2}, {2, 0}), -3, 1e-12);  // Errors -2, 2: variance 4 over 1.
  EXPECT_EQ(of({1, 1}, {0, 2}), 0) << "equal returns";
}

}  // namespace
}  // namespace temper::trainer
