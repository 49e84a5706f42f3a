#include "actors/policy/transformer.hpp"
#include "core/files.hpp"
#include "tests/support/tiny_policy.hpp"
#include "trainer/torch/engine.hpp"
#include "trainer/torch/minibatch.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace temper::trainer {
namespace {

using tests::bytes_of;
using tests::kVocabulary;
using tests::training_batch;

TorchEngineOptions options() {
  TorchEngineOptions o;
  o.model = tests::tiny_model();
  o.vocabulary = kVocabulary;
  o.algorithm.minibatches = 2;
  o.algorithm.micro_batch_tokens = Tokens(16);
  o.algorithm.learning_rate = 1e-3;
  o.seed = 5;
  return o;
}

std::unique_ptr<Engine> engine(const TorchEngineOptions& o = options()) {
  return make_torch_engine(o, tests::tiny_weights());
}

TEST(Minibatches, KeepGroupsWholeAndCoverTheBatchOnce) {
  const auto list = training_batch(1, 10);
  const auto parts = split_minibatches(list, 4, 9, 0);
  ASSERT_EQ(parts.size(), 4u);
  std::set<std::size_t> seen;
  std::set<GroupId> groups;
  for (const SampleIndices& part : parts) {
    std::set<GroupId> here;
    for (const std::size_t i : part) {
      EXPECT_TRUE(seen.insert(i).second);
      here.insert(list[i].group);
    }
    EXPECT_EQ(part.size(), here.size() * 4);
    EXPECT_GE(here.size(), 2u);
    groups.insert(here.begin(), here.end());
  }
  EXPECT_EQ(seen.size(), 40u);
  EXPECT_EQ(groups.size(), 10u);
  EXPECT_EQ(split_minibatches(list, 4, 9, 0), parts);
  EXPECT_NE(split_minibatches(list, 4, 9, 1), parts);
  EXPECT_EQ(split_minibatches(list, 100, 9, 0).size(), 10u);
}

TEST(Minibatches, PacksHoldAtMostTheirRows) {
  const auto list = training_batch(1, 10);
  const auto part = split_minibatches(list, 1, 9, 0)[0];
  const auto micro = pack_micro_batches(list, part, 20);
  std::size_t samples = 0;
  for (const MicroBatch& m : micro) {
    EXPECT_LE(m.pack.rows(), 20);
    std::size_t targets = 0;
    for (const std::size_t i : m.samples)
      targets += list[i].response.size();
    EXPECT_EQ(m.pack.targets().size(), targets);
    samples += m.samples.size();
  }
  EXPECT_EQ(samples, 40u);
  EXPECT_EQ(pack_micro_batches(list, part, 100000).size(), 1u);
}

TEST(TorchTrainer, RatioIsOneForSamplesOfTheCurrentPolicy) {
  auto list = training_batch(3);
  actors::Weights weights = tests::tiny_weights();
  actors::Transformer network(weights);
  for (TrainSample& s : list) {
    actors::Pack pack;
    pack.add_prompt(s.prompt);
    pack.add_response(s.response);
    const auto p = network.forward(pack, 1.0, actors::Graph::Discard);
    s.behaviour_logprobs.assign(p.begin(), p.end());
  }
  EXPECT_NEAR(engine()->update(list).value().ratio_mean, 1.0, 1e-5);
}

/// A batch whose response ids start at 100.
std::vector<TrainSample> numbered_batch() {
  auto list = training_batch(3);
  for (std::size_t i = 0; i < list.size(); ++i)
    list[i].id = ResponseId(100 + i);
  return list;
}

TEST(TorchTrainer, ALossThatIsNotFiniteNamesTheResponseWithTheLargestRatio) {
  auto list = numbered_batch();
  TrainSample& sample = list[5];
  sample.reward = -1e17;
  std::ranges::fill(sample.behaviour_logprobs, -100.0F);
  list[6].behaviour_logprobs.front() = -50;
  TorchEngineOptions o = options();
  const auto updated = engine(o)->update(list);
  ASSERT_FALSE(updated);
  EXPECT_NE(updated.error().context.find(fmt::format("in response 105 of group {}", sample.group)),
            std::string::npos)
      << updated.error().context;
  EXPECT_EQ(updated.error().code, ErrorCode::NotFinite);
}

TEST(TorchTrainer, AnImpossibleValueOfASampleIsRefusedByItsNumber) {
  const auto refused = [](auto change) {
    auto list = numbered_batch();
    change(list[5]);
    const auto updated = engine()->update(list);
    return updated ? std::string() : updated.error().context;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::string& why : {refused([&](TrainSample& s) { s.behaviour_logprobs[0] = nan; }),
                                 refused([&](TrainSample& s) { s.behaviour_logprobs[0] = -1000; }),
                                 refused([&](TrainSample& s) { s.behaviour_logprobs[0] = 5; }),
                                 refused([&](TrainSample& s) { s.reward = 1e308; }),
                                 refused([&](TrainSample& s) { s.reward = double{nan}; })})
    EXPECT_TRUE(why.starts_with("response 105 of group ")) << why;
}

TEST(TorchTrainer, MicroBatchesDoNotChangeTheUpdate) {
  TorchEngineOptions big = options();
  big.algorithm.micro_batch_tokens = Tokens(10000);
  const auto one = engine(big);
  const auto many = engine();
  EXPECT_EQ(one->update(training_batch(4)).value().micro_batches, 2);
  EXPECT_GT(many->update(training_batch(4)).value().micro_batches, 2);
  const std::string image_a = one->weights().value();
  const std::string image_b = many->weights().value();
  const auto a = actors::Weights::from_image(tests::tiny_layout(), bytes_of(image_a)).value();
  const auto b = actors::Weights::from_image(tests::tiny_layout(), bytes_of(image_b)).value();
  double difference = 0;
  for (std::int64_t i = 0; i < a.values().size(); ++i)
    difference += std::abs(static_cast<double>(a.values().data()[i] - b.values().data()[i]));
  EXPECT_LT(difference / static_cast<double>(a.values().size()), 1e-5);
}

class TorchTrainerFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / (std::string("trainer_") + info->name());
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(make_folder(folder_));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(TorchTrainerFiles, SaveLoadUpdateIsTheUninterruptedRun) {
  const auto straight = engine();
  ASSERT_TRUE(straight->update(training_batch(1)));
  ASSERT_TRUE(straight->update(training_batch(2)));
  ASSERT_TRUE(straight->save(folder_));
  ASSERT_TRUE(straight->update(training_batch(3)));
  const auto resumed = make_torch_engine(options(), tests::tiny_weights(99));
  ASSERT_TRUE(resumed->load(folder_));
  ASSERT_TRUE(resumed->update(training_batch(3)));
  EXPECT_EQ(resumed->weights().value(), straight->weights().value());
}

TEST_F(TorchTrainerFiles, LoadRefusesByNameAndLeavesTheEngineAsItWas) {
  const auto e = engine();
  ASSERT_TRUE(e->update(training_batch(1)));
  ASSERT_TRUE(e->save(folder_));
  const std::string before = e->weights().value();
  const auto refuses =
      [&](const std::string& file, const std::string& content, const std::string& why) {
        const std::string good = read_file(folder_ / file).value();
        ASSERT_TRUE(write_file_atomically(folder_ / file, content));
        const Status status = e->load(folder_);
        ASSERT_FALSE(status);
        EXPECT_NE(status.error().context.find(file), std::string::npos) << status.error().context;
        EXPECT_NE(status.error().context.find(why), std::string::npos) << status.error().context;
        EXPECT_EQ(e->weights().value(), before);
        ASSERT_TRUE(write_file_atomically(folder_ / file, good));
      };
  const std::string moments = read_file(folder_ / "optimizer.safetensors").value();
  refuses("optimizer.safetensors", moments.substr(0, moments.size() - 4), "v.lm_head.weight");
  refuses("optimizer.safetensors", before, "model.embed_tokens.weight");
  refuses("model.safetensors", tests::tiny_image(), "belongs to step ?");
  refuses("trainer.json", "{}", "expected the numbers");
  refuses("trainer.json", "not json", "expected the numbers");
  EXPECT_TRUE(e->load(folder_));
}

TEST(TorchTrainer, OffloadAndOnloadAreExact) {
  const auto straight = engine();
  const auto moved = engine();
  ASSERT_TRUE(straight->update(training_batch(1)));
  ASSERT_TRUE(moved->update(training_batch(1)));
  const TrainerMemory before = moved->memory();
  EXPECT_GT(before.gradients, Bytes(0));
  EXPECT_EQ(before.optimizer, before.weights * 2);
  EXPECT_EQ(before.host, Bytes(0));
  ASSERT_TRUE(moved->offload());
  EXPECT_EQ(moved->memory().optimizer, Bytes(0));
  EXPECT_EQ(moved->memory().gradients, Bytes(0));
  EXPECT_EQ(moved->memory().host, before.optimizer);
  EXPECT_FALSE(moved->update(training_batch(2))) << "the optimizer is offloaded";
  ASSERT_TRUE(moved->onload());
  ASSERT_TRUE(straight->update(training_batch(2)));
  ASSERT_TRUE(moved->update(training_batch(2)));
  EXPECT_EQ(moved->weights().value(), straight->weights().value());
}

TEST(TorchTrainer, AFailedUpdateChangesNothing) {
  const auto failed = engine();
  const auto clean = engine();
  auto bad = training_batch(1);
  for (TrainSample& s : bad) {
    for (float& p : s.behaviour_logprobs)
      p = -1000;  // The ratio overflows: an infinite gradient.
  }
  const std::string before = failed->weights().value();
  EXPECT_FALSE(failed->update(bad));
  EXPECT_EQ(failed->weights().value(), before);
  bad[0].behaviour_logprobs.pop_back();
  EXPECT_FALSE(failed->update(bad)) << "one log-prob per token";
  ASSERT_TRUE(failed->update(training_batch(2)));
  ASSERT_TRUE(clean->update(training_batch(2)));
  EXPECT_EQ(failed->weights().value(), clean->weights().value());
}

TEST_F(TorchTrainerFiles, AStepThatFailsAfterItsFirstMinibatchIsUndoneByACheckpoint) {
  const auto clean = engine();
  ASSERT_TRUE(clean->save(folder_));
  ASSERT_TRUE(clean->update(training_batch(2)));
  std::size_t undone = 0;
  const std::size_t samples = training_batch(1).size();
  for (std::size_t bad = 0; bad < samples; ++bad) {
    const auto failed = engine();
    const std::string before = failed->weights().value();
    auto batch = training_batch(1);
    batch[bad].reward = -1e17;  // The loss overflows in one of the two minibatches.
    std::ranges::fill(batch[bad].behaviour_logprobs, -100.0F);
    const auto updated = failed->update(batch);
    ASSERT_FALSE(updated);
    ASSERT_EQ(updated.error().code, ErrorCode::NotFinite);
    if (const auto weights = failed->weights(); weights) {
      EXPECT_EQ(*weights, before);
    } else {
      EXPECT_EQ(weights.error().code, ErrorCode::NotFinite);
      EXPECT_EQ(failed->update(training_batch(2)).error().code, ErrorCode::NotFinite);
      EXPECT_EQ(failed->save(folder_).error().code, ErrorCode::NotFinite);
      ++undone;
    }
    ASSERT_TRUE(failed->load(folder_));
    ASSERT_TRUE(failed->update(training_batch(2)));
    EXPECT_EQ(failed->weights().value(), clean->weights().value());
  }
  EXPECT_GT(undone, 0u);
  EXPECT_LT(undone, samples);
}

TEST(TorchTrainer, KlNeedsReferenceLogprobs) {
  TorchEngineOptions o = options();
  o.algorithm.kl = 0.1;
  auto list = training_batch(1);
  list[1].reference_logprobs.clear();
  EXPECT_FALSE(engine(o)->update(list));
}

}  // namespace
}  // namespace temper::trainer
