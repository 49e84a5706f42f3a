// A step with the loss on the teacher's most likely tokens: its loss is compared with whole
// distributions, its gradient with finite differences of the loss over weights.
#include "actors/policy/reference.hpp"
#include "actors/policy/transformer.hpp"
#include "tests/support/reference_loss.hpp"
#include "tests/support/tiny_policy.hpp"
#include "trainer/torch/engine.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace temper::trainer {
namespace {

using tests::kVocabulary;

constexpr std::uint64_t kTeacher = 8;
constexpr double kTemperature = 0.9;

AlgorithmConfig config(std::int32_t top_k) {
  AlgorithmConfig c;
  c.name = AlgorithmName::Opd;
  c.distillation = 0.7;
  c.distillation_top_k = top_k;
  c.minibatches = 1;
  c.micro_batch_tokens = Tokens(24);
  c.learning_rate = 0.3;
  c.gradient_clip = 1e9;
  c.adam_epsilon = 1.0;
  return c;
}

std::unique_ptr<Engine> engine_of(const AlgorithmConfig& algorithm, actors::Weights weights) {
  TorchEngineOptions o;
  o.model = tests::tiny_model();
  o.vocabulary = kVocabulary;
  o.algorithm = algorithm;
  o.longest_response = Tokens(7);
  o.temperature = kTemperature;
  return make_torch_engine(o, std::move(weights));
}

/// A batch with the scores of a teacher; every third token of it has no loss.
std::vector<TrainSample> scored_batch(std::int32_t top_k) {
  std::vector<TrainSample> batch = tests::training_batch(2);
  actors::TorchReferenceOptions options;
  options.model = tests::tiny_model();
  options.vocabulary = kVocabulary;
  options.temperature = kTemperature;
  options.top_k = top_k;
  const auto teacher = actors::make_torch_reference(options, tests::tiny_weights(kTeacher));
  std::vector<actors::ScoringRequest> requests;
  for (const TrainSample& s : batch)
    requests.push_back({s.prompt, s.response});
  auto scores = teacher->score(requests).value();
  for (std::size_t i = 0, token = 0; i < batch.size(); ++i) {
    batch[i].reference_logprobs = scores.logprobs[i];
    if (scores.top)
      batch[i].top = std::move((*scores.top)[i]);
    for (std::size_t t = 0; t < batch[i].response.size(); ++t)
      batch[i].mask.push_back(++token % 3 == 0 ? 0 : 1);
  }
  return batch;
}

/// The whole distribution at each response token.
std::vector<std::vector<double>> distributions(const TrainSample& s, std::uint64_t seed) {
  std::vector<std::int32_t> all;
  for (std::size_t i = 0; i < s.response.size() * kVocabulary; ++i)
    all.push_back(static_cast<std::int32_t>(i % kVocabulary));
  actors::Pack pack;
  pack.add_prompt(s.prompt);
  pack.add_response(s.response);
  pack.add_candidates(all);
  actors::Weights weights = tests::tiny_weights(seed);
  actors::Transformer network(weights);
  const auto logprobs = network.forward(pack, kTemperature, actors::Graph::Discard);
  std::vector<std::vector<double>> out(s.response.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    out[i / kVocabulary].push_back(std::exp(static_cast<double>(logprobs[s.response.size() + i])));
  return out;
}

TEST(TopKTraining, LossIsThatOfWholeDistributions) {
  for (const std::int32_t top_k : {1, 3, kVocabulary}) {
    SCOPED_TRACE(top_k);
    const auto batch = scored_batch(top_k);
    double sum = 0, tokens = 0;
    for (const TrainSample& s : batch) {
      const auto policy = distributions(s, 7), teacher = distributions(s, kTeacher);
      for (std::size_t t = 0; t < s.response.size(); ++t) {
        if (!s.is_trained(t))
          continue;
        std::vector<int> order(kVocabulary);
        std::iota(order.begin(), order.end(), 0);
        std::ranges::sort(order, std::greater(), [&](int token) {
          return teacher[t][static_cast<std::size_t>(token)];
        });
        order.resize(static_cast<std::size_t>(top_k));
        sum += 0.7 * tests::reference_divergence(tests::reference_outcomes(policy[t], order),
                                                 tests::reference_outcomes(teacher[t], order));
        tokens += 1;
      }
    }
    const auto metrics = engine_of(config(top_k), tests::tiny_weights())->update(batch).value();
    EXPECT_NEAR(metrics.loss, sum / tokens, 1e-5);
    EXPECT_GT(metrics.loss, 0.01);
  }
}

/// The gradient of the first step, from what AdamW with an epsilon of 1 made of it: its moments are
/// those of one gradient g, so that a weight moves by rate * g / (|g| + 1).
double gradient(float before, float after, double rate) {
  const double moved = static_cast<double>(before) - static_cast<double>(after);
  return moved / (rate - std::abs(moved));
}

TEST(TopKTraining, GradientIsThatOfFiniteDifferences) {
  constexpr float kStep = 2e-3F;
  const auto batch = scored_batch(3);
  const AlgorithmConfig c = config(3);
  const auto loss_at = [&](std::size_t place, float by) {
    actors::Weights weights = tests::tiny_weights();
    weights.values().span()[place] += by;
    return engine_of(c, std::move(weights))->update(batch).value().loss;
  };
  const actors::Weights before = tests::tiny_weights();
  const auto trained = engine_of(c, tests::tiny_weights());
  ASSERT_TRUE(trained->update(batch));
  const std::string image = trained->weights().value();
  const auto after =
      actors::Weights::from_image(tests::tiny_layout(), tests::bytes_of(image)).value();
  std::size_t checked = 0;
  for (std::size_t place = 3; place < before.values().span().size(); place += 97) {
    const double g =
        gradient(before.values().span()[place], after.values().span()[place], c.learning_rate);
    if (std::abs(g) < 2e-3)
      continue;
    const double expected = (loss_at(place, kStep) - loss_at(place, -kStep)) / (2.0 * kStep);
    EXPECT_NEAR(g, expected, 1e-4 + 0.01 * std::abs(expected)) << "weight " << place;
    ++checked;
  }
  EXPECT_GT(checked, 10u);
}

TEST(TopKTraining, BringsThePolicyToTheTeacherWithoutRewards) {
  const auto batch = scored_batch(4);
  AlgorithmConfig c = config(4);
  c.learning_rate = 0.01;
  c.adam_epsilon = 1e-8;
  const auto engine = engine_of(c, tests::tiny_weights());
  const double first = engine->update(batch).value().loss;
  double last = first;
  for (int step = 0; step < 60; ++step)
    last = engine->update(batch).value().loss;
  EXPECT_LT(last, 0.05 * first);
}

TEST(TopKTraining, PreparedGradientsGiveTheSameStep) {
  const auto batch = scored_batch(3);
  const auto whole = engine_of(config(3), tests::tiny_weights());
  const auto prepared = engine_of(config(3), tests::tiny_weights());
  ASSERT_TRUE(prepared->prepare(std::span(batch).first(8)));
  ASSERT_TRUE(whole->update(batch) && prepared->update(batch));
  const std::string a = whole->weights().value(), b = prepared->weights().value();
  const auto layout = tests::tiny_layout();
  const auto x = actors::Weights::from_image(layout, tests::bytes_of(a)).value();
  const auto y = actors::Weights::from_image(layout, tests::bytes_of(b)).value();
  for (std::size_t i = 0; i < x.values().span().size(); ++i)
    ASSERT_NEAR(x.values().span()[i], y.values().span()[i], 1e-5);
}

TEST(TopKTraining, RejectsScoresOfAnotherNumberOfTokens) {
  const auto engine = engine_of(config(3), tests::tiny_weights());
  const auto few = engine->update(scored_batch(2));
  ASSERT_FALSE(few);
  EXPECT_NE(few.error().context.find("algorithm.distillation_top_k 3"), std::string::npos)
      << few.error().context;
  EXPECT_FALSE(engine->update(scored_batch(0)));
  EXPECT_FALSE(engine_of(config(0), tests::tiny_weights())->update(scored_batch(3)));
  EXPECT_TRUE(engine->update(scored_batch(3)));
}

}  // namespace
}  // namespace temper::trainer
