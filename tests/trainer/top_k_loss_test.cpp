// Compares the divergence with tests/support/reference_loss.hpp, which sums over whole
// distributions.
#include "trainer/top_k_loss.hpp"

#include "core/random.hpp"
#include "tests/support/reference_loss.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace temper::trainer {
namespace {

using Vector = std::vector<double>;

constexpr int kVocabulary = 9;

Vector random_distribution(Random& random, double spread) {
  Vector p;
  double sum = 0;
  for (int token = 0; token < kVocabulary; ++token)
    sum += p.emplace_back(std::exp(spread * random.normal()));
  for (double& x : p)
    x /= sum;
  return p;
}

std::vector<int> most_likely(const Vector& p, std::size_t k) {
  std::vector<int> order;
  for (int token = 0; token < kVocabulary; ++token)
    order.push_back(token);
  std::ranges::sort(
      order, std::greater(), [&](int token) { return p[static_cast<std::size_t>(token)]; });
  order.resize(k);
  return order;
}

Vector logprobs(const Vector& p, const std::vector<int>& top) {
  Vector out;
  for (const int token : top)
    out.push_back(std::log(p[static_cast<std::size_t>(token)]));
  return out;
}

struct Divergence {
  double value = 0;
  Vector derivatives;
};

Divergence divergence(const Vector& policy, const Vector& teacher) {
  Divergence out{0, Vector(policy.size())};
  out.value = top_k_divergence(policy, teacher, out.derivatives);
  return out;
}

TEST(TopKLoss, IsTheReverseKlOverTheTopTokensAndTheRest) {
  Random random(1, "distributions");
  for (int round = 0; round < 200; ++round) {
    const Vector p = random_distribution(random, 1.5), q = random_distribution(random, 1.5);
    const std::size_t k = 1 + random.below(kVocabulary - 1);
    const std::vector<int> top = most_likely(q, k);
    const double found = divergence(logprobs(p, top), logprobs(q, top)).value;
    const double expected = tests::reference_divergence(tests::reference_outcomes(p, top),
                                                        tests::reference_outcomes(q, top));
    ASSERT_NEAR(found, expected, 1e-12);
    ASSERT_GE(found, 0);
    ASSERT_LE(found, tests::reference_divergence(p, q) + 1e-12) << "merged outcomes differ less";
  }
}

TEST(TopKLoss, HasTheDerivativesOfFiniteDifferences) {
  constexpr double kStep = 1e-6;
  Random random(2, "distributions");
  for (int round = 0; round < 200; ++round) {
    const Vector p = random_distribution(random, 1), q = random_distribution(random, 1);
    const std::vector<int> top = most_likely(q, 1 + random.below(kVocabulary - 2));
    const Vector policy = logprobs(p, top), teacher = logprobs(q, top);
    const Divergence found = divergence(policy, teacher);
    for (std::size_t i = 0; i < policy.size(); ++i) {
      Vector above = policy, below = policy;
      above[i] += kStep;
      below[i] -= kStep;
      const double expected =
          (divergence(above, teacher).value - divergence(below, teacher).value) / (2 * kStep);
      ASSERT_NEAR(found.derivatives[i], expected, 1e-7 * (1 + std::abs(expected)));
    }
  }
}

TEST(TopKLoss, OfTheWholeVocabularyIsTheWholeReverseKl) {
  Random random(3, "distributions");
  const Vector p = random_distribution(random, 1), q = random_distribution(random, 1);
  const std::vector<int> all = most_likely(q, kVocabulary);
  EXPECT_NEAR(divergence(logprobs(p, all), logprobs(q, all)).value,
              tests::reference_divergence(p, q),
              1e-9);
}

TEST(TopKLoss, IsZeroWithoutAGradientOnlyIfTheOutcomesAgree) {
  // The policy differs from the teacher among the other tokens only: 0.3 = 0.2 + 0.1 = 0.15 + 0.15.
  const Vector teacher{std::log(0.4), std::log(0.3)};
  const Divergence same = divergence(teacher, teacher);
  EXPECT_EQ(same.value, 0);
  EXPECT_EQ(same.derivatives, (Vector{0, 0}));
  EXPECT_GT(divergence({std::log(0.3), std::log(0.4)}, teacher).value, 0.02) << "a rest of 0.3";
}

TEST(TopKLoss, RaisesTheTopTokensWhereThePolicyPrefersOthers) {
  // p_r = 0.8, q_r = 0.1: log-ratios of log(0.1 / 0.6), log(0.1 / 0.3) and log 8 for the rest.
  const Divergence found =
      divergence({std::log(0.1), std::log(0.1)}, {std::log(0.6), std::log(0.3)});
  const double first = std::log(0.1 / 0.6), second = std::log(0.1 / 0.3), rest = std::log(8);
  EXPECT_NEAR(found.value, 0.1 * first + 0.1 * second + 0.8 * rest, 1e-12);
  EXPECT_NEAR(found.derivatives[0], 0.1 * (first - rest), 1e-12);
  EXPECT_NEAR(found.derivatives[1], 0.1 * (second - rest), 1e-12);
}

TEST(TopKLoss, IsFiniteForCertainPoliciesAndTeachers) {
  // The teacher is certain of its first token, and rounding puts both sums above 1.
  const Vector certain{1e-7, std::log(1e-12)}, doubtful{std::log(0.5), std::log(0.25)};
  EXPECT_NEAR(divergence(certain, certain).value, 0, 1e-12);
  // 0.5 log 0.5 + 0.25 log(0.25 / 1e-12) + 0.25 log(0.25 / kLeastRest).
  EXPECT_NEAR(divergence(doubtful, certain).value,
              0.5 * std::log(0.5) + 0.25 * std::log(0.25e12) + 0.25 * std::log(0.25e6),
              1e-6);
  for (const double d : divergence(certain, doubtful).derivatives)
    EXPECT_TRUE(std::isfinite(d));
}

TEST(TopKLoss, LeavesOutTokensThatThePolicyDidNotSample) {
  TrainSample sample;
  sample.response = {3, 4, 5};
  sample.mask = {1, 0, 1};
  sample.top.ids = {3, 4, 5};
  for (const double q : {0.5, 0.9, 0.25})
    sample.top.logprobs.push_back(static_cast<float>(std::log(q)));
  const std::vector<float> policy(4,
                                  static_cast<float>(std::log(0.5)));  // One of another response.
  Algorithm a;
  a.distillation = 2;
  std::vector<TokenLoss> losses(2);
  EXPECT_TRUE(add_top_k_loss(sample, policy, a, losses).empty()) << "without distillation_top_k";
  a.distillation_top_k = 1;
  losses[1].loss = 1;
  const Vector derivatives = add_top_k_loss(sample, policy, a, losses);
  EXPECT_NEAR(losses[0].loss, 0, 1e-7);
  // Twice 0.5 log(0.5 / 0.25) + 0.5 log(0.5 / 0.75), beside the loss of 1 that it had.
  EXPECT_NEAR(losses[1].loss, 1 + std::log(2) + std::log(2.0 / 3), 1e-6);
  ASSERT_EQ(derivatives.size(), 3u);
  EXPECT_NEAR(derivatives[0], 0, 1e-7);
  EXPECT_EQ(derivatives[1], 0);
  EXPECT_NEAR(derivatives[2], std::log(2) - std::log(2.0 / 3), 1e-6);
}

}  // namespace
}  // namespace temper::trainer
