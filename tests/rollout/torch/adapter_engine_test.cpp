// The rollout engine with adapters: versions follow each other over one copy of the base.
#include "actors/model_folder/config_json.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "rollout/torch/engine.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_adapter.hpp"

#include <gtest/gtest.h>

#include <map>

namespace temper::rollout {
namespace {

using tests::bytes_of;

class AdapterEngineTest : public ::testing::Test {
 protected:
  AdapterEngineTest() {
    actors::ConfigJson config;
    config.model = tests::tiny_model();
    config.model.vocabulary = tests::kVocabulary;
    const actors::Weights weights = tests::tiny_weights();
    actors::ModelFolderToWrite what;
    what.config_json = actors::write_config_json(config);
    EXPECT_TRUE(actors::write_model_folder(
        folder_.path(), what, actors::tensors_to_write(weights.layout(), weights.values().span())));
  }

  TorchEngineOptions options() const {
    TorchEngineOptions o;
    o.model = tests::lora_model();
    o.base = folder_.path();
    o.vocabulary = tests::kVocabulary;
    o.sampling.max_new_tokens = Tokens(10);
    o.seed = 42;
    o.concurrency = 8;
    return o;
  }

  static void put(Engine& engine, std::uint64_t version, const std::string& image) {
    ASSERT_TRUE(engine.stage(PolicyVersion(version), bytes_of(image)));
    ASSERT_TRUE(engine.commit(PolicyVersion(version)));
  }

  /// Log-probs of all tokens of a few responses.
  static std::vector<float> run(Engine& engine) {
    for (std::uint64_t id = 0; id < 6; ++id) {
      Random random(id / 2, "prompt");
      engine.add({ResponseId(id), tests::random_tokens(random, 5), {}});
    }
    std::map<std::uint64_t, std::vector<float>> all;
    while (engine.load() > 0) {
      auto result = engine.step();
      EXPECT_TRUE(result) << result.error().context;
      for (const Generation& g : result->finished)
        all[g.id.value()] = g.logprobs;
    }
    std::vector<float> out;
    for (const auto& [id, logprobs] : all)
      out.insert(out.end(), logprobs.begin(), logprobs.end());
    return out;
  }

  test::TemporaryFolder folder_;
};

TEST_F(AdapterEngineTest, SamplesFromTheMergedPolicy) {
  const auto engine = make_torch_engine(options()).value();
  TorchEngineOptions full = options();
  full.model.lora.reset();
  const auto expected = make_torch_engine(full).value();
  for (const std::uint64_t version : {1, 2, 3}) {
    const actors::Adapter adapter = tests::random_adapter(version);
    put(*engine, version, tests::image_of(adapter));
    put(*expected, version, tests::merged(adapter).to_image({}));
    const auto own = run(*engine);
    const auto merged = run(*expected);
    ASSERT_EQ(own.size(), merged.size());
    for (std::size_t i = 0; i < own.size(); ++i)
      EXPECT_NEAR(own[i], merged[i], 1e-4f);
  }
}

TEST_F(AdapterEngineTest, NeverHoldsASecondCopyOfTheBase) {
  const auto engine = make_torch_engine(options()).value();
  const std::string image = tests::image_of(tests::random_adapter(1));
  const Bytes base(tests::tiny_layout().size() * 4);
  const Bytes adapter(tests::tiny_adapter_layout().size() * 4);
  put(*engine, 0, image);
  EXPECT_LE(engine->memory().weights, base + adapter + Bytes(4096));
  ASSERT_TRUE(engine->stage(PolicyVersion(1), bytes_of(image)));
  EXPECT_LE(engine->memory().weights, base + adapter + adapter + Bytes(4096));
}

/// Eight versions at once, each with two responses, in one batch.
TEST_F(AdapterEngineTest, FinishesResponsesOfEightVersionsInOneBatch) {
  TorchEngineOptions o = options();
  o.on_new_weights = OnNewWeights::Finish;
  o.concurrency = 32;
  o.end_tokens = {-1};  // All responses have 10 tokens.
  const auto add = [](Engine& engine, std::uint64_t version) {
    Random random(version, "prompt");
    const auto prompt = tests::random_tokens(random, 5);
    engine.add({ResponseId(2 * version), prompt, {}});
    engine.add({ResponseId(2 * version + 1), prompt, {}});
  };
  std::map<std::uint64_t, Generation> together;
  const auto keep = [](StepResult result, std::map<std::uint64_t, Generation>& all) {
    for (Generation& g : result.finished)
      all[g.id.value()] = std::move(g);
  };
  const auto engine = make_torch_engine(o).value();
  for (std::uint64_t v = 0; v < 8; ++v) {
    put(*engine, v, tests::image_of(tests::random_adapter(v)));
    add(*engine, v);
    keep(engine->step().value(), together);
  }
  const Bytes base(tests::tiny_layout().size() * 4);
  const Bytes adapter(tests::tiny_adapter_layout().size() * 4);
  EXPECT_GT(engine->memory().weights, base + adapter * 8 - Bytes(4096));
  EXPECT_LT(engine->memory().weights, base + adapter * 9);
  while (engine->load() > 0)
    keep(engine->step().value(), together);
  ASSERT_EQ(together.size(), 16u);

  for (std::uint64_t v = 0; v < 8; ++v) {
    const auto alone = make_torch_engine(o).value();
    put(*alone, v, tests::image_of(tests::random_adapter(v)));
    add(*alone, v);
    std::map<std::uint64_t, Generation> expected;
    while (alone->load() > 0)
      keep(alone->step().value(), expected);
    for (const auto& [id, own] : expected) {
      EXPECT_EQ(together.at(id).tokens, own.tokens) << id;
      ASSERT_EQ(together.at(id).segments.size(), 1u);
      EXPECT_EQ(together.at(id).segments[0].version, PolicyVersion(v));
      for (std::size_t i = 0; i < own.logprobs.size(); ++i)
        EXPECT_NEAR(together.at(id).logprobs[i], own.logprobs[i], 1e-5f);
    }
  }
}

TEST_F(AdapterEngineTest, ReadsTheBaseAgainAfterItWasFreed) {
  const auto engine = make_torch_engine(options()).value();
  const std::string image = tests::image_of(tests::random_adapter(1));
  put(*engine, 0, image);
  const auto before = run(*engine);
  ASSERT_TRUE(engine->free_weights());
  EXPECT_EQ(engine->memory().weights, Bytes(0));
  put(*engine, 1, image);
  EXPECT_EQ(run(*engine), before);
  // A version that was staged before the weights were freed keeps the base.
  ASSERT_TRUE(engine->stage(PolicyVersion(2), bytes_of(image)));
  ASSERT_TRUE(engine->free_weights());
  ASSERT_TRUE(engine->commit(PolicyVersion(2)));
  EXPECT_EQ(run(*engine), before);
}

TEST_F(AdapterEngineTest, RefusesAnImageThatIsNoAdapter) {
  const auto engine = make_torch_engine(options()).value();
  const Status staged = engine->stage(PolicyVersion(0), bytes_of(tests::tiny_image()));
  ASSERT_FALSE(staged);
  EXPECT_NE(staged.error().context.find("weights of version 0"), std::string::npos);
  TorchEngineOptions nowhere = options();
  nowhere.base = folder_ / "missing";
  const auto other = make_torch_engine(nowhere).value();
  const Status without =
      other->stage(PolicyVersion(0), bytes_of(tests::image_of(tests::random_adapter(1))));
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().context.find("missing"), std::string::npos) << without.error().context;
}

}  // namespace
}  // namespace temper::rollout
