#include "actors/policy/transformer.hpp"
#include "core/files.hpp"
#include "tests/policy/support.hpp"
#include "trainer/torch/engine.hpp"
#include "trainer/torch/grpo.hpp"
#include "trainer/torch/minibatch.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace temper::trainer {
namespace {

using tests::bytes_of;
using tests::kVocabulary;

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
  return make_torch_engine(o, bytes_of(tests::tiny_image())).value();
}

/// `groups` groups of four responses with rewards 0 or 1; log-probs off the current ones.
std::vector<TrainSample> batch(std::uint64_t seed, std::uint64_t groups = 4) {
  Random random(seed, "batch");
  std::vector<TrainSample> list;
  for (std::uint64_t g = 0; g < groups; ++g) {
    const auto prompt = tests::random_tokens(random, 3 + random.below(3));
    for (std::uint64_t i = 0; i < 4; ++i) {
      TrainSample s;
      s.group = GroupId(g);
      s.prompt = prompt;
      s.response = tests::random_tokens(random, 1 + random.below(5));
      for (std::size_t t = 0; t < s.response.size(); ++t) {
        s.behaviour_logprobs.push_back(static_cast<float>(-2.4 + 0.3 * random.normal()));
        s.reference_logprobs.push_back(static_cast<float>(-2.4 + 0.3 * random.normal()));
      }
      s.reward = i == g % 4 || random.chance(0.5) ? 1 : 0;
      list.push_back(std::move(s));
    }
  }
  return list;
}

TEST(Grpo, AdvantagesAreDeviationsOverTheGroup) {
  std::vector<TrainSample> list(5);
  list[0].group = list[2].group = list[4].group = GroupId(1);
  list[1].group = list[3].group = GroupId(2);
  list[0].reward = 1;
  list[2].reward = 0;
  list[4].reward = 0.5;
  list[1].reward = list[3].reward = 1;
  const auto a = group_advantages(list, 0.0);
  // Group 1: mean 0.5, deviation sqrt((0.25 + 0.25 + 0) / 3) = 0.408.
  EXPECT_NEAR(a[0], 0.5 / std::sqrt(0.5 / 3), 1e-12);
  EXPECT_NEAR(a[2], -0.5 / std::sqrt(0.5 / 3), 1e-12);
  EXPECT_EQ(a[4], 0);
  EXPECT_EQ(a[1], 0) << "equal rewards say nothing, even without an epsilon";
}

TEST(Grpo, ClipsEachSideOnlyWhereItPays) {
  AlgorithmConfig c;
  c.clip_low = 0.2;
  c.clip_high = 0.3;
  const auto at = [&](double ratio, double advantage) {
    return token_loss({std::log(ratio), 0, advantage, std::nullopt}, c);
  };
  EXPECT_NEAR(at(1.5, 1).loss, -1.3, 1e-12);  // Up, and already far: no more.
  EXPECT_EQ(at(1.5, 1).d_logprob, 0);
  EXPECT_NEAR(at(1.5, -1).loss, 1.5, 1e-12);  // Up, but should go down: full slope.
  EXPECT_NEAR(at(1.5, -1).d_logprob, 1.5, 1e-12);
  EXPECT_NEAR(at(0.5, -1).loss, 0.8, 1e-12);
  EXPECT_TRUE(at(0.5, -1).clipped);
  EXPECT_NEAR(at(0.5, 1).loss, -0.5, 1e-12);
  EXPECT_NEAR(at(0.5, 1).d_logprob, -0.5, 1e-12);
}

TEST(Grpo, DerivativesAreTheDifferencesOfTheLoss) {
  AlgorithmConfig c;
  c.kl = 0.3;
  for (const double advantage : {-1.2, 0.7}) {
    for (const double logprob : {-2.0, -1.05, -0.9, -0.2}) {
      const auto loss = [&](double x) { return token_loss({x, -1.0, advantage, -0.7}, c).loss; };
      const double expected = (loss(logprob + 1e-6) - loss(logprob - 1e-6)) / 2e-6;
      EXPECT_NEAR(token_loss({logprob, -1.0, advantage, -0.7}, c).d_logprob, expected, 1e-6);
    }
  }
}

TEST(Minibatches, KeepGroupsWholeAndCoverTheBatchOnce) {
  const auto list = batch(1, 10);
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
  const auto list = batch(1, 10);
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

// One minibatch in one pack, by hand: the mean token loss over log-probs computed one sample at a
// time, its gradient, and the first AdamW step, which is lr * g / (|g| + eps) for every weight.
TEST(TorchTrainer, AnUpdateIsTheStepOfTheGrpoLoss) {
  TorchEngineOptions o = options();
  o.algorithm.minibatches = 1;
  o.algorithm.kl = 0.1;
  o.algorithm.gradient_clip = 1e9;
  o.algorithm.adam_epsilon = 1.0;  // Then the step is nearly lr * g: sizes count, not only signs.
  const auto list = batch(2);
  const auto e = engine(o);
  const UpdateMetrics metrics = e->update(list).value();

  actors::Weights weights = tests::tiny_weights();
  actors::Transformer network(weights);
  const auto advantages = group_advantages(list, o.algorithm.advantage_epsilon);
  double tokens = 0;
  for (const TrainSample& s : list)
    tokens += static_cast<double>(s.response.size());
  double loss = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    actors::Pack pack;
    pack.add_prompt(list[i].prompt);
    pack.add_response(list[i].response);
    const auto p = network.forward(pack, 1.0, actors::Graph::Keep);
    std::vector<float> d;
    for (std::size_t t = 0; t < p.size(); ++t) {
      const double ratio = std::exp(static_cast<double>(p[t] - list[i].behaviour_logprobs[t]));
      const double gap = static_cast<double>(list[i].reference_logprobs[t] - p[t]);
      const double a = advantages[i];
      const bool clipped = a > 0 ? ratio > 1.28 : ratio < 0.8;
      loss +=
          (clipped ? (a > 0 ? -1.28 * a : -0.8 * a) : -ratio * a) + 0.1 * (std::exp(gap) - 1 - gap);
      d.push_back(
          static_cast<float>(((clipped ? 0 : -ratio * a) + 0.1 * (1 - std::exp(gap))) / tokens));
    }
    network.backward(d);
  }
  EXPECT_NEAR(metrics.loss, loss / tokens, 1e-5);
  EXPECT_GT(metrics.micro_batches, 1);
  const std::string image = e->weights().value();
  const auto updated = actors::Weights::from_image(tests::tiny_layout(), bytes_of(image)).value();
  for (std::int64_t i = 0; i < updated.values().size(); ++i) {
    const double g = static_cast<double>(network.gradients().data()[i]);
    const double step = 1e-3 * g / (std::abs(g) + 1.0);
    EXPECT_NEAR(updated.values().data()[i],
                static_cast<double>(weights.values().data()[i]) - step,
                1e-6 + 1e-3 * std::abs(step));
  }
}

TEST(TorchTrainer, RatioIsOneForSamplesOfTheCurrentPolicy) {
  auto list = batch(3);
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

TEST(TorchTrainer, MicroBatchesDoNotChangeTheUpdate) {
  TorchEngineOptions big = options();
  big.algorithm.micro_batch_tokens = Tokens(10000);
  const auto one = engine(big);
  const auto many = engine();
  EXPECT_EQ(one->update(batch(4)).value().micro_batches, 2);
  EXPECT_GT(many->update(batch(4)).value().micro_batches, 2);
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
  ASSERT_TRUE(straight->update(batch(1)));
  ASSERT_TRUE(straight->update(batch(2)));
  ASSERT_TRUE(straight->save(folder_));
  ASSERT_TRUE(straight->update(batch(3)));
  const auto resumed = make_torch_engine(options(), bytes_of(tests::tiny_image(99))).value();
  ASSERT_TRUE(resumed->load(folder_));
  ASSERT_TRUE(resumed->update(batch(3)));
  EXPECT_EQ(resumed->weights().value(), straight->weights().value());
}

TEST_F(TorchTrainerFiles, LoadRefusesByNameAndLeavesTheEngineAsItWas) {
  const auto e = engine();
  ASSERT_TRUE(e->update(batch(1)));
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
  refuses("optimizer.safetensors", moments.substr(0, moments.size() - 4), "v.head.weight");
  refuses("optimizer.safetensors", before, "m.embedding.weight");
  refuses("model.safetensors", tests::tiny_image(), "is of update ?");
  refuses("trainer.json", "{}", "needs numbers");
  refuses("trainer.json", "not json", "needs numbers");
  EXPECT_TRUE(e->load(folder_));
}

TEST(TorchTrainer, OffloadAndOnloadAreExact) {
  const auto straight = engine();
  const auto moved = engine();
  ASSERT_TRUE(straight->update(batch(1)));
  ASSERT_TRUE(moved->update(batch(1)));
  const TrainerMemory before = moved->memory();
  EXPECT_GT(before.gradients, Bytes(0));
  EXPECT_EQ(before.optimizer, before.weights * 2);
  EXPECT_EQ(before.host, Bytes(0));
  ASSERT_TRUE(moved->offload());
  EXPECT_EQ(moved->memory().optimizer, Bytes(0));
  EXPECT_EQ(moved->memory().gradients, Bytes(0));
  EXPECT_EQ(moved->memory().host, before.optimizer);
  EXPECT_FALSE(moved->update(batch(2))) << "the optimizer is away";
  ASSERT_TRUE(moved->onload());
  ASSERT_TRUE(straight->update(batch(2)));
  ASSERT_TRUE(moved->update(batch(2)));
  EXPECT_EQ(moved->weights().value(), straight->weights().value());
}

TEST(TorchTrainer, AFailedUpdateChangesNothing) {
  const auto failed = engine();
  const auto clean = engine();
  auto bad = batch(1);
  for (TrainSample& s : bad) {
    for (float& p : s.behaviour_logprobs)
      p = -1000;  // The ratio overflows: an infinite gradient.
  }
  const std::string before = failed->weights().value();
  EXPECT_FALSE(failed->update(bad));
  EXPECT_EQ(failed->weights().value(), before);
  bad[0].behaviour_logprobs.pop_back();
  EXPECT_FALSE(failed->update(bad)) << "one log-prob per token";
  ASSERT_TRUE(failed->update(batch(2)));
  ASSERT_TRUE(clean->update(batch(2)));
  EXPECT_EQ(failed->weights().value(), clean->weights().value());
}

TEST(TorchTrainer, KlNeedsReferenceLogprobs) {
  TorchEngineOptions o = options();
  o.algorithm.kl = 0.1;
  auto list = batch(1);
  list[1].reference_logprobs.clear();
  EXPECT_FALSE(engine(o)->update(list));
}

}  // namespace
}  // namespace temper::trainer
