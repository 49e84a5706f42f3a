// Gradients that are computed before their batch is complete do not change the step.
#include "core/msgpack.hpp"
#include "core/temporary_folder.hpp"
#include "tests/support/tiny_policy.hpp"
#include "trainer/algorithm_table.hpp"
#include "trainer/torch/engine.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::trainer {
namespace {

using tests::kVocabulary;
using tests::training_batch;

constexpr std::size_t kResponses = 4;  // Per group of training_batch().

TorchEngineOptions prepare_options(AlgorithmName name = AlgorithmName::Grpo) {
  TorchEngineOptions o;
  o.model = tests::tiny_model();
  o.vocabulary = kVocabulary;
  o.algorithm.name = name;
  o.algorithm.minibatches = 1;
  o.algorithm.micro_batch_tokens = Tokens(24);
  o.algorithm.learning_rate = 1e-4;
  o.algorithm.kl = 0.02;
  o.longest_response = Tokens(8);
  return o;
}

std::unique_ptr<Engine> prepare_engine(const TorchEngineOptions& o = prepare_options()) {
  return make_torch_engine(o, tests::tiny_weights());
}

std::span<const TrainSample> groups(const std::vector<TrainSample>& batch,
                                    std::size_t first,
                                    std::size_t count) {
  return std::span(batch).subspan(first * kResponses, count * kResponses);
}

/// The largest difference between two weights.
double difference(const Engine& a, const Engine& b) {
  const std::string of_a = a.weights().value(), of_b = b.weights().value();
  const auto one = actors::Weights::from_image(tests::tiny_layout(), tests::bytes_of(of_a)).value();
  const auto two = actors::Weights::from_image(tests::tiny_layout(), tests::bytes_of(of_b)).value();
  double most = 0;
  for (std::int64_t i = 0; i < one.values().size(); ++i)
    most = std::max(most,
                    std::abs(static_cast<double>(one.values().data()[i]) - two.values().data()[i]));
  return most;
}

void expect_same(const UpdateMetrics& a, const UpdateMetrics& b) {
  EXPECT_NEAR(a.loss, b.loss, 1e-6);
  EXPECT_NEAR(a.kl, b.kl, 1e-6);
  EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-6);
  EXPECT_NEAR(a.ratio_mean, b.ratio_mean, 1e-6);
  EXPECT_NEAR(a.entropy, b.entropy, 1e-6);
  EXPECT_EQ(a.reward_mean, b.reward_mean);
  EXPECT_EQ(a.tokens, b.tokens);
}

std::vector<AlgorithmName> names(bool with_batch) {
  std::vector<AlgorithmName> out;
  for (const AlgorithmRow& row : algorithm_table()) {
    if (needs_whole_batch(row.columns) == with_batch)
      out.push_back(row.name);
  }
  return out;
}

class PreparedGradientsOf : public testing::TestWithParam<AlgorithmName> {};
INSTANTIATE_TEST_SUITE_P(Algorithms,
                         PreparedGradientsOf,
                         testing::ValuesIn(names(false)),
                         [](const auto& p) { return std::string(name_of(p.param)); });

/// Each group fills a micro-batch, so that the same passes are summed in the same order.
TEST_P(PreparedGradientsOf, GiveTheSameStepBitForBitInTheSameOrder) {
  TorchEngineOptions o = prepare_options(GetParam());
  o.algorithm.micro_batch_tokens = Tokens(1);
  const auto plain = prepare_engine(o), prepared = prepare_engine(o);
  for (const std::uint64_t seed : {1, 2}) {
    const auto batch = training_batch(seed);
    ASSERT_TRUE(prepared->prepare(groups(batch, 0, 2)));
    ASSERT_TRUE(prepared->prepare(groups(batch, 2, 1)));
    const auto with = prepared->update(batch), without = plain->update(batch);
    ASSERT_TRUE(with && without);
    EXPECT_EQ(prepared->weights().value(), plain->weights().value());
    EXPECT_EQ(encode(*with), encode(*without));
  }
}

TEST_P(PreparedGradientsOf, GiveTheSameStepInAnyOrder) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto plain = prepare_engine(prepare_options(GetParam())),
               prepared = prepare_engine(prepare_options(GetParam()));
    const auto batch = training_batch(seed);
    ASSERT_TRUE(prepared->prepare(groups(batch, 3, 1)));
    ASSERT_TRUE(prepared->prepare(groups(batch, 1, 1)));
    const auto with = prepared->update(batch), without = plain->update(batch);
    ASSERT_TRUE(with && without);
    EXPECT_LE(difference(*prepared, *plain), 1e-6);
    expect_same(*with, *without);
  }
}

TEST(PreparedGradients, OfTheWholeBatchLeaveOnlyTheOptimizerStep) {
  const auto plain = prepare_engine(), prepared = prepare_engine();
  const auto batch = training_batch(1);
  ASSERT_TRUE(prepared->prepare(batch));
  ASSERT_TRUE(prepared->update(batch));
  ASSERT_TRUE(plain->update(batch));
  EXPECT_EQ(prepared->weights().value(), plain->weights().value());
}

TEST(PreparedGradients, AreRejectedIfAdvantagesDependOnTheWholeBatch) {
  EXPECT_EQ(
      names(true),
      (std::vector{AlgorithmName::Ppo, AlgorithmName::ReinforcePp, AlgorithmName::PpoCritic}));
  const auto batch = training_batch(1);
  for (const AlgorithmName name : names(true))
    EXPECT_FALSE(prepare_engine(prepare_options(name))->prepare(groups(batch, 0, 1)))
        << name_of(name);
  TorchEngineOptions several = prepare_options();
  several.algorithm.minibatches = 2;
  EXPECT_FALSE(prepare_engine(several)->prepare(groups(batch, 0, 1)));
}

TEST(PreparedGradients, AreDroppedAfterTheirStepInAnyCase) {
  const auto plain = prepare_engine(), prepared = prepare_engine();
  const auto first = training_batch(1), second = training_batch(2);
  ASSERT_TRUE(prepared->prepare(groups(first, 0, 2)));
  const auto refused = prepared->update(groups(first, 1, 3));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context,
            "step: 4 responses of group 0 are prepared, but the batch has 0");
  EXPECT_EQ(prepared->weights().value(), plain->weights().value());
  ASSERT_TRUE(prepared->update(second));
  ASSERT_TRUE(plain->update(second));
  EXPECT_EQ(prepared->weights().value(), plain->weights().value());
}

TEST(PreparedGradients, AreComputedOncePerGroup) {
  const auto prepared = prepare_engine(), plain = prepare_engine();
  const auto batch = training_batch(1);
  ASSERT_TRUE(prepared->prepare(groups(batch, 0, 2)));
  EXPECT_FALSE(prepared->prepare(groups(batch, 1, 2)));
  auto broken = training_batch(1);
  broken[2 * kResponses].behaviour_logprobs.pop_back();
  EXPECT_FALSE(prepared->prepare(groups(broken, 2, 1)));
  ASSERT_TRUE(prepared->update(batch)) << "a rejected batch leaves no state";
  ASSERT_TRUE(plain->update(batch));
  EXPECT_LE(difference(*prepared, *plain), 1e-6);
}

TEST(PreparedGradients, KeepTheOptimizerOnTheDeviceUntilTheirStep) {
  const auto prepared = prepare_engine();
  const auto batch = training_batch(1);
  ASSERT_TRUE(prepared->prepare(groups(batch, 0, 1)));
  const Status refused = prepared->offload();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context,
            "offload: gradients are prepared for the next step (1 groups)");
  ASSERT_TRUE(prepared->update(batch));
  ASSERT_TRUE(prepared->offload());
  EXPECT_FALSE(prepared->prepare(groups(batch, 0, 1))) << "the optimizer is offloaded";
}

TEST(PreparedGradients, AreDroppedByALoad) {
  const TemporaryFolder folder = TemporaryFolder::create("temperprepare-").value();
  const auto prepared = prepare_engine(), plain = prepare_engine();
  const auto batch = training_batch(1);
  ASSERT_TRUE(plain->save(folder.path()));
  ASSERT_TRUE(prepared->prepare(groups(batch, 0, 2)));
  ASSERT_TRUE(prepared->load(folder.path()));
  ASSERT_TRUE(prepared->update(batch));
  ASSERT_TRUE(plain->update(batch));
  EXPECT_EQ(prepared->weights().value(), plain->weights().value());
}

}  // namespace
}  // namespace temper::trainer
