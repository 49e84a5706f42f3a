#include "actors/policy/sampler.hpp"

#include "actors/policy/internal/kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::actors {
namespace {

// Probabilities 0.5, 0.25, 0.125, 0.125.
const std::vector<float> kLogits{std::log(4.0f), std::log(2.0f), 0.0f, 0.0f};

SampledToken draw(const Sampler& sampler, std::vector<float> logits, double uniform) {
  return sampler.draw(logits, uniform);
}

SampledToken likeliest(const Sampler& sampler, std::vector<float> logits) {
  return sampler.likeliest(logits);
}

TEST(Sampler, InvertsTheCumulativeDistribution) {
  const Sampler sampler(1.0, 1.0);
  EXPECT_EQ(draw(sampler, kLogits, 0.0).token, 0);
  EXPECT_EQ(draw(sampler, kLogits, 0.49).token, 0);
  EXPECT_EQ(draw(sampler, kLogits, 0.51).token, 1);
  EXPECT_EQ(draw(sampler, kLogits, 0.76).token, 2);
  EXPECT_EQ(draw(sampler, kLogits, 0.9999999999).token, 3);
  EXPECT_NEAR(draw(sampler, kLogits, 0.6).logprob, std::log(0.25), 1e-6);
}

TEST(Sampler, LikeliestHasTheLargestLogitAndTheLowestId) {
  const Sampler sampler(0.5, 0.1);
  EXPECT_EQ(likeliest(sampler, kLogits).token, 0);
  EXPECT_NEAR(likeliest(sampler, kLogits).logprob, std::log(16.0 / 22.0), 1e-6);
  EXPECT_EQ(likeliest(sampler, std::vector<float>{0.0f, 1.0f, 1.0f}).token, 1);
  EXPECT_EQ(likeliest(sampler, std::vector<float>{0.0f, NAN}).token, -1);
}

TEST(Sampler, RecordsTheProbabilityAtTheTemperature) {
  // At temperature 1/2 the weights 4, 2, 1, 1 become 16, 4, 1, 1: 16/22.
  const Sampler sampler(0.5, 1.0);
  EXPECT_NEAR(draw(sampler, kLogits, 0.1).logprob, std::log(16.0 / 22.0), 1e-6);
}

TEST(Sampler, SamplesFromTheRenormalizedNucleus) {
  const Sampler sampler(1.0, 0.7);  // 0.5 is not enough, 0.75 is: tokens 0 and 1.
  int second = 0;
  for (std::int64_t i = 0; i < 10000; ++i) {
    const SampledToken s = draw(sampler, kLogits, sampling_uniform(1, ResponseId(5), i));
    ASSERT_LE(s.token, 1);
    ASSERT_NEAR(s.logprob, std::log(s.token == 0 ? 2.0 / 3 : 1.0 / 3), 1e-6);
    second += s.token;
  }
  EXPECT_NEAR(second, 3333, 200);
}

TEST(Sampler, RejectsLogitsThatAreNotFinite) {
  const Sampler sampler(1.0, 1.0);
  EXPECT_LT(draw(sampler, std::vector<float>{0.0f, std::nanf("")}, 0.5).token, 0);
  EXPECT_LT(draw(sampler, std::vector<float>{0.0f, INFINITY}, 0.5).token, 0);
}

TEST(Sampler, UniformsAreEvenAndReproducible) {
  double sum = 0;
  for (std::uint64_t id = 0; id < 1000; ++id) {
    for (std::int64_t position = 0; position < 10; ++position)
      sum += sampling_uniform(3, ResponseId(id), position);
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.01);
  EXPECT_EQ(sampling_uniform(3, ResponseId(4), 5), sampling_uniform(3, ResponseId(4), 5));
  EXPECT_NE(sampling_uniform(3, ResponseId(4), 5), sampling_uniform(3, ResponseId(5), 4));
}

TEST(Kernels, SoftmaxAgreesWithTheStandardLibrary) {
  std::vector<float> logits;
  for (int i = 0; i < 300; ++i)
    logits.push_back(0.37f * static_cast<float>(i % 97) - 20.0f);
  std::vector<float> p(logits.size());
  const float log_sum = softmax(logits.data(), p.data(), 300, 1.0f);
  double sum = 0;
  for (const float z : logits)
    sum += std::exp(static_cast<double>(z));
  EXPECT_NEAR(log_sum, std::log(sum), 1e-5);
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double expected = std::exp(static_cast<double>(logits[i])) / sum;
    EXPECT_NEAR(p[i], expected, 3e-6 * expected + 1e-30);
  }
}

}  // namespace
}  // namespace temper::actors
