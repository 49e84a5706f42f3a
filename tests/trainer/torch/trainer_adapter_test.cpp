// The trainer engine with adapters: what it trains, publishes, holds and saves.
#include "actors/model_folder/adapter_folder.hpp"
#include "core/files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_adapter.hpp"
#include "trainer/torch/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::trainer {
namespace {

using tests::training_batch;

TorchEngineOptions options(const actors::LoraConfig& lora = {.rank = 3, .alpha = 6}) {
  TorchEngineOptions o;
  o.model = tests::lora_model(lora);
  o.vocabulary = tests::kVocabulary;
  o.algorithm.minibatches = 2;
  o.algorithm.micro_batch_tokens = Tokens(24);
  o.algorithm.learning_rate = 1e-2;
  o.seed = 5;
  return o;
}

Result<TrainedPolicy> initial(const TorchEngineOptions& o, const std::filesystem::path& base = {}) {
  const auto layout = actors::Layout::make(o.model, o.vocabulary).value();
  return TrainedPolicy::with_adapter(
      layout, tests::frozen(actors::Weights::random(layout, 7)), base, o.seed);
}

std::unique_ptr<Engine> engine(const TorchEngineOptions& o = options(),
                               const std::filesystem::path& base = {}) {
  return make_torch_engine(o, initial(o, base).value());
}

std::string image(const Engine& e) {
  std::string out;
  EXPECT_TRUE(e.publish([&](std::span<const std::byte> part) {
    out.append(reinterpret_cast<const char*>(part.data()), part.size());
    return Status();
  }));
  return out;
}

std::vector<float> adapter_of(const std::string& image) {
  const auto adapter =
      actors::Adapter::from_image(tests::tiny_adapter_layout(), tests::bytes_of(image)).value();
  return {adapter.values().span().begin(), adapter.values().span().end()};
}

TEST(AdapterTrainer, PublishesAdaptersThatLearn) {
  const auto e = engine();
  const auto first = adapter_of(image(*e));
  double loss = 0;
  for (std::uint64_t step = 0; step < 3; ++step) {
    const auto metrics = e->update(training_batch(step));
    ASSERT_TRUE(metrics) << metrics.error().context;
    EXPECT_GT(metrics->gradient_norm, 0);
    loss = metrics->loss;
  }
  EXPECT_TRUE(std::isfinite(loss));
  const auto last = adapter_of(image(*e));
  EXPECT_FALSE(std::ranges::equal(first, last));
}

TEST(AdapterTrainer, HoldsNoGradientsOrMomentsOfFrozenWeights) {
  const auto e = engine();
  ASSERT_TRUE(e->update(training_batch(1)));
  const Bytes adapter(tests::tiny_adapter_layout().size() * 4);
  const TrainerMemory memory = e->memory();
  EXPECT_EQ(memory.weights, Bytes(tests::tiny_layout().size() * 4) + adapter);
  EXPECT_EQ(memory.gradients, adapter);
  EXPECT_EQ(memory.optimizer, adapter + adapter);
}

TEST(AdapterTrainer, HoldsFrozenMatricesInTheTypeOfTheirProducts) {
  TorchEngineOptions rounded = options();
  rounded.model.compute_dtype = actors::ComputeType::Bfloat16;
  const auto layout = actors::Layout::make(rounded.model, rounded.vocabulary).value();
  const auto weights = tests::frozen(actors::Weights::random(layout, 7)).bytes();
  const auto e = engine(rounded);
  ASSERT_TRUE(e->update(training_batch(1)));
  EXPECT_EQ(e->memory().weights, weights + Bytes(tests::tiny_adapter_layout().size() * 4));
  EXPECT_LT(e->memory().weights, engine()->memory().weights);
}

TEST(AdapterTrainer, ContinuesExactlyFromACheckpointThatPeftReads) {
  const test::TemporaryFolder folder;
  const auto straight = engine();
  ASSERT_TRUE(straight->update(training_batch(1)));
  ASSERT_TRUE(straight->offload());
  ASSERT_TRUE(straight->save(folder.path()));
  ASSERT_TRUE(straight->onload());
  EXPECT_FALSE(std::filesystem::exists(folder / "model.safetensors"));
  const auto config = actors::read_adapter_config(folder.path()).value();
  EXPECT_EQ(config.lora, (actors::LoraConfig{.rank = 3, .alpha = 6}));
  EXPECT_TRUE(
      std::ranges::equal(actors::read_adapter(folder.path(), tests::tiny_adapter_layout()).value(),
                         adapter_of(image(*straight))));

  TorchEngineOptions other = options();
  other.seed = 9;  // Another initial adapter.
  const auto resumed = engine(other);
  ASSERT_TRUE(resumed->load(folder.path()));
  EXPECT_EQ(image(*resumed), image(*straight));
}

TEST(AdapterTrainer, StartsFromTheAdapterInItsBase) {
  const test::TemporaryFolder base;
  const std::filesystem::path folder = base.path() / actors::kFirstAdapterFolder;
  const actors::LoraConfig lora{.rank = 3, .alpha = 6};
  ASSERT_TRUE(make_folder(folder));
  const std::string stored = tests::image_of(tests::random_adapter(9, lora));
  ASSERT_TRUE(write_file_atomically(folder / actors::kAdapterFile, stored));
  ASSERT_TRUE(write_file_atomically(folder / actors::kAdapterConfigFile,
                                    actors::adapter_config_json(lora, "")));
  const auto started = engine(options(), base.path());
  EXPECT_EQ(adapter_of(image(*started)), adapter_of(stored));
  EXPECT_NE(adapter_of(image(*engine())), adapter_of(stored));
  const auto other = initial(options({.rank = 2, .alpha = 6}), base.path());
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().context.find("lora_A.weight': found shape"), std::string::npos)
      << other.error().context;
}

TEST(AdapterTrainer, RefusesACheckpointOfAnotherRankOrOfAllWeights) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(engine()->save(folder.path()));
  const auto other = engine(options({.rank = 2, .alpha = 4}));
  const Status rank = other->load(folder.path());
  ASSERT_FALSE(rank);
  EXPECT_NE(rank.error().context.find("adapter_model.safetensors"), std::string::npos);
  EXPECT_NE(rank.error().context.find("lora_A"), std::string::npos) << rank.error().context;

  const test::TemporaryFolder full;
  TorchEngineOptions all = options();
  all.model.lora.reset();
  ASSERT_TRUE(make_torch_engine(all, tests::tiny_weights())->save(full.path()));
  const Status without = engine()->load(full.path());
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().context.find("adapter_model.safetensors"), std::string::npos);
}

}  // namespace
}  // namespace temper::trainer
