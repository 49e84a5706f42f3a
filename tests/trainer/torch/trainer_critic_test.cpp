// The trainer engine with a critic: what it learns, holds, saves and never publishes.
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_policy.hpp"
#include "trainer/torch/engine.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace temper::trainer {
namespace {

using tests::training_batch;

TorchEngineOptions critic_options() {
  TorchEngineOptions o;
  o.model = tests::tiny_model();
  o.vocabulary = tests::kVocabulary;
  o.algorithm.name = AlgorithmName::PpoCritic;
  o.algorithm.minibatches = 2;
  o.algorithm.micro_batch_tokens = Tokens(24);
  o.algorithm.learning_rate = 1e-2;
  o.seed = 5;
  return o;
}

std::unique_ptr<Engine> critic_trainer(const TorchEngineOptions& o = critic_options()) {
  return make_torch_engine(o, tests::tiny_weights());
}

/// Each response is a group of its own.
std::vector<TrainSample> single_responses(std::uint64_t seed) {
  std::vector<TrainSample> batch = training_batch(seed);
  for (std::size_t i = 0; i < batch.size(); ++i)
    batch[i].group = GroupId(i);
  return batch;
}

TEST(CriticTrainer, LearnsTheReturnsOfSingleResponses) {
  const auto e = critic_trainer();
  const auto batch = single_responses(1);
  std::vector<UpdateMetrics> steps;
  for (int i = 0; i < 60; ++i) {
    const auto metrics = e->update(batch);
    ASSERT_TRUE(metrics) << metrics.error().context;
    steps.push_back(*metrics);
  }
  EXPECT_EQ(steps.front().critic_value_mean, 0.0) << "the head is zero at first";
  EXPECT_EQ(steps.front().critic_explained_variance, 0.0);
  // Responses to one prompt have one first value, but several returns.
  EXPECT_LT(*steps.back().critic_loss, 0.5 * *steps.front().critic_loss);
  EXPECT_GT(*steps.back().critic_explained_variance, 0.4);
  EXPECT_NE(steps.front().gradient_norm, 0);
}

TEST(CriticTrainer, WithoutACriticReportsNothingAboutOne) {
  TorchEngineOptions o = critic_options();
  o.algorithm.name = AlgorithmName::Ppo;
  const auto metrics = critic_trainer(o)->update(training_batch(1));
  ASSERT_TRUE(metrics);
  EXPECT_FALSE(metrics->critic_loss || metrics->critic_value_mean ||
               metrics->critic_explained_variance || metrics->critic_clip_fraction);
}

TEST(CriticTrainer, WarmsUpWithoutChangingThePolicy) {
  TorchEngineOptions o = critic_options();
  o.algorithm.critic.warm_up_steps = 2;
  const auto e = critic_trainer(o);
  const std::string first = e->weights().value();
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < 2; ++step) {
    const auto metrics = e->update(single_responses(1));
    ASSERT_TRUE(metrics);
    EXPECT_EQ(metrics->gradient_norm, 0);
    losses.push_back(*metrics->critic_loss);
  }
  EXPECT_LT(losses[1], losses[0]);
  const auto values = [](const std::string& image) {
    const auto weights =
        actors::Weights::from_image(tests::tiny_layout(), tests::bytes_of(image)).value();
    return std::vector<float>(weights.values().span().begin(), weights.values().span().end());
  };
  EXPECT_EQ(values(e->weights().value()), values(first));
  ASSERT_TRUE(e->update(single_responses(1)));
  EXPECT_NE(values(e->weights().value()), values(first));
}

TEST(CriticTrainer, ClipsValuesOnlyIfAsked) {
  TorchEngineOptions o = critic_options();
  const auto step = [](const TorchEngineOptions& with) {
    return *critic_trainer(with)->update(single_responses(1))->critic_clip_fraction;
  };
  EXPECT_EQ(step(o), 0);
  // In the second minibatch, values have moved further than this towards a return of 1.
  o.algorithm.critic.value_clip = 1e-3;
  EXPECT_GT(step(o), 0);
}

TEST(CriticTrainer, HoldsASecondNetworkWithItsOwnOptimizer) {
  const auto e = critic_trainer();
  ASSERT_TRUE(e->update(single_responses(1)));
  const Bytes policy(tests::tiny_layout().size() * 4);
  const Bytes critic(tests::tiny_layout().of_critic().size() * 4);
  const TrainerMemory memory = e->memory();
  EXPECT_EQ(memory.weights, policy + critic);
  EXPECT_EQ(memory.gradients, policy + critic);
  EXPECT_EQ(memory.optimizer, policy + policy + critic + critic);
  ASSERT_TRUE(e->offload());
  EXPECT_EQ(e->memory().optimizer, Bytes(0));
  EXPECT_EQ(e->memory().host, memory.optimizer);
  ASSERT_TRUE(e->onload());
  EXPECT_EQ(e->memory().optimizer, memory.optimizer);
}

TEST(CriticTrainer, ContinuesExactlyFromACheckpoint) {
  TorchEngineOptions o = critic_options();
  o.algorithm.critic = {.value_clip = 0.2, .learning_rate = 3e-2, .warm_up_steps = 1};
  const test::TemporaryFolder folder;
  const auto straight = critic_trainer(o);
  ASSERT_TRUE(straight->update(single_responses(1)));  // Warm-up: the optimizers' steps differ.
  ASSERT_TRUE(straight->update(single_responses(2)));
  ASSERT_TRUE(straight->offload());
  ASSERT_TRUE(straight->save(folder.path()));
  ASSERT_TRUE(straight->onload());
  const auto resumed = make_torch_engine(o, tests::tiny_weights(9));
  ASSERT_TRUE(resumed->load(folder.path()));
  for (std::uint64_t step = 3; step < 5; ++step) {
    const auto a = straight->update(single_responses(step));
    const auto b = resumed->update(single_responses(step));
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->critic_loss, b->critic_loss);
    EXPECT_EQ(a->loss, b->loss);
    EXPECT_EQ(straight->weights().value(), resumed->weights().value());
  }
}

TEST(CriticTrainer, RefusesACheckpointWithoutACritic) {
  TorchEngineOptions without = critic_options();
  without.algorithm.name = AlgorithmName::Ppo;
  const test::TemporaryFolder folder;
  ASSERT_TRUE(critic_trainer(without)->save(folder.path()));
  const auto e = critic_trainer();
  const std::string before = e->weights().value();
  const Status loaded = e->load(folder.path());
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().context.find("expected critic_optimizer_steps, found none"),
            std::string::npos)
      << loaded.error().context;
  EXPECT_EQ(e->weights().value(), before);
}

TEST(CriticTrainer, ReadsNoDamagedCritic) {
  const test::TemporaryFolder folder;
  const auto e = critic_trainer();
  ASSERT_TRUE(e->save(folder.path()));
  const auto file = folder / "critic_optimizer.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  const Status loaded = e->load(folder.path());
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().context.find("critic_optimizer.safetensors"), std::string::npos)
      << loaded.error().context;
}

TEST(CriticTrainer, PublishesThePolicyOnly) {
  const auto e = critic_trainer();
  ASSERT_TRUE(e->update(single_responses(1)));
  const std::string image = e->weights().value();
  const auto parsed = actors::parse_safetensors(tests::bytes_of(image)).value();
  EXPECT_EQ(parsed.tensors.size(), tests::tiny_layout().stored().size());
  EXPECT_EQ(image.find("score.weight"), std::string::npos);
}

TEST(CriticTrainer, ComputesNoGradientsInAdvance) {
  TorchEngineOptions o = critic_options();
  o.algorithm.minibatches = 1;
  o.algorithm.advantage_std = AdvantageStd::None;
  const Status prepared = critic_trainer(o)->prepare(single_responses(1));
  ASSERT_FALSE(prepared);
  EXPECT_NE(prepared.error().context.find("depend on the whole batch"), std::string::npos);
}

}  // namespace
}  // namespace temper::trainer
