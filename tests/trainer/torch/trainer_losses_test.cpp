// Compares the step of the trainer engine for each algorithm with one from
// tests/support/reference_loss.hpp, log-probs computed one response at a time, and AdamW.
#include "actors/policy/adamw.hpp"
#include "actors/policy/transformer.hpp"
#include "tests/support/reference_loss.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_policy.hpp"
#include "trainer/algorithm_table.hpp"
#include "trainer/torch/engine.hpp"
#include "trainer/torch/minibatch.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::trainer {
namespace {

using tests::bytes_of;
using tests::ReferenceResponse;

constexpr std::uint64_t kSeed = 5;
constexpr Tokens kLongest{7};

/// Steps large enough that the proximal policy differs from the current one in the second
/// minibatch; no gradient clip and an epsilon of 1, so that the size of a step matters, not only
/// its sign.
AlgorithmConfig config() {
  AlgorithmConfig c;
  c.minibatches = 2;
  c.micro_batch_tokens = Tokens(16);
  c.learning_rate = 0.3;
  c.gradient_clip = 1e9;
  c.adam_epsilon = 1.0;
  c.behaviour_weight_cap = 1.2;
  return c;
}

std::unique_ptr<Engine> engine_of(const AlgorithmConfig& algorithm) {
  TorchEngineOptions o;
  o.model = tests::tiny_model();
  o.vocabulary = tests::kVocabulary;
  o.algorithm = algorithm;
  o.longest_response = kLongest;
  o.seed = kSeed;
  return make_torch_engine(o, tests::tiny_weights());
}

std::vector<float> weights_of(const Engine& e) {
  const std::string image = e.weights().value();
  const auto w = actors::Weights::from_image(tests::tiny_layout(), bytes_of(image)).value();
  return {w.values().span().begin(), w.values().span().end()};
}

std::vector<double> doubles(std::span<const float> floats) {
  return {floats.begin(), floats.end()};
}

/// The same step, computed directly.
class PlainTrainer {
 public:
  PlainTrainer(const AlgorithmConfig& config, const std::vector<TrainSample>& batch)
      : config_(config), algorithm_(resolve(config, kLongest)), batch_(batch) {
    std::vector<tests::ReferenceReward> rewards;
    for (const TrainSample& s : batch_) {
      proximal_.push_back(logprobs(s, actors::Graph::Discard));
      const double over = static_cast<double>(s.response.size()) -
                          static_cast<double>((kLongest - algorithm_.overlong_buffer).count());
      const auto buffer = static_cast<double>(algorithm_.overlong_buffer.count());
      const double punished = buffer > 0 ? std::min(1.0, std::max(0.0, over / buffer)) : 0;
      rewards.push_back({static_cast<int>(s.group.value()), s.reward - punished});
    }
    advantages_ = tests::reference_advantages(rewards, algorithm_);
  }

  std::vector<float> update() {
    double loss = 0;
    const auto parts = split_minibatches(batch_, config_.minibatches, kSeed, 0);
    for (const SampleIndices& part : parts) {
      std::fill_n(network_.gradients().data(), network_.gradients().size(), 0.0f);
      std::size_t tokens = 0;
      for (const std::size_t i : part)
        tokens += batch_[i].response.size();
      for (const std::size_t i : part)
        loss += add_gradient(i, tokens, part.size());
      actors::adamw_step({config_.learning_rate,
                          config_.beta1,
                          config_.beta2,
                          config_.adam_epsilon,
                          config_.weight_decay,
                          config_.gradient_clip},
                         network_.gradients(),
                         actors::gradient_norm(network_.gradients()),
                         optimizer_,
                         weights_);
    }
    loss_ = loss / static_cast<double>(parts.size());
    return {weights_.values().span().begin(), weights_.values().span().end()};
  }
  double loss() const { return loss_; }

 private:
  std::vector<double> logprobs(const TrainSample& s, actors::Graph graph) {
    actors::Pack pack;
    pack.add_prompt(s.prompt);
    pack.add_response(s.response);
    return doubles(network_.forward(pack, 1.0, graph));
  }

  double add_gradient(std::size_t i, std::size_t tokens, std::size_t responses) {
    const TrainSample& s = batch_[i];
    ReferenceResponse r{logprobs(s, actors::Graph::Keep),
                        doubles(s.behaviour_logprobs),
                        proximal_[i],
                        doubles(s.reference_logprobs),
                        advantages_[i]};
    if (algorithm_.proximal == Proximal::Interpolated) {
      for (std::size_t t = 0; t < r.proximal.size(); ++t)
        r.proximal[t] = (r.behaviour[t] + s.ages[t] * r.current[t]) / (1 + s.ages[t]);
    }
    const auto n = static_cast<double>(s.response.size()), all = static_cast<double>(responses);
    double each = 1 / static_cast<double>(tokens);
    if (algorithm_.average == Averaging::Sequence)
      each = 1 / all / n;
    if (algorithm_.average == Averaging::Constant)
      each = 1 / all / static_cast<double>(kLongest.count());
    std::vector<float> scaled;
    for (const double d : tests::reference_derivatives(r, algorithm_))
      scaled.push_back(static_cast<float>(d * each));
    network_.backward(scaled);
    return each * tests::reference_loss(r, r.current, algorithm_);
  }

  const AlgorithmConfig config_;
  const Algorithm algorithm_;
  const std::vector<TrainSample>& batch_;
  actors::Weights weights_ = tests::tiny_weights();
  actors::AdamWState optimizer_{tests::tiny_layout()};
  actors::Transformer network_{weights_};
  std::vector<std::vector<double>> proximal_;
  std::vector<double> advantages_;
  double loss_ = 0;
};

void expect_the_plain_step(const AlgorithmConfig& c) {
  auto batch = tests::training_batch(2);
  // Samplers that are 0 to 2 versions old, not the same within a response.
  for (std::size_t i = 0; i < batch.size(); ++i) {
    for (std::size_t t = 0; t < batch[i].response.size(); ++t)
      batch[i].ages.push_back(static_cast<std::int32_t>((i + t) % 3));
  }
  const auto e = engine_of(c);
  const UpdateMetrics metrics = e->update(batch).value();
  PlainTrainer plain(c, batch);
  const std::vector<float> expected = plain.update(), found = weights_of(*e);
  const std::vector<float> before = weights_of(*engine_of(c));
  double moved = 0, error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    moved = std::max(moved, std::abs(static_cast<double>(expected[i] - before[i])));
    error = std::max(error, std::abs(static_cast<double>(found[i] - expected[i])));
  }
  EXPECT_GT(moved, 1e-3);
  EXPECT_LT(error, 1e-3 * moved);
  EXPECT_NEAR(metrics.loss, plain.loss(), 1e-5 * (1 + std::abs(plain.loss())));
}

TEST(TorchTrainer, MatchesTheReferenceForEveryRow) {
  for (const AlgorithmRow& row : algorithm_table()) {
    SCOPED_TRACE(name_of(row.name));
    AlgorithmConfig c = config();
    c.name = row.name;
    c.kl = 0.1;
    if (row.name != AlgorithmName::PpoCritic)  // See critic_trainer_test.cpp.
      expect_the_plain_step(c);
  }
}

TEST(TorchTrainer, MatchesTheReferenceForEveryObjective) {
  for (const auto& [objective, name] : EnumNames<Objective>::value) {
    for (const WeightMode mode : {WeightMode::Clamp, WeightMode::Mask}) {
      SCOPED_TRACE(name);
      AlgorithmConfig c = config();
      c.objective = objective;
      c.behaviour_weight_mode = mode;
      expect_the_plain_step(c);
    }
  }
}

TEST(TorchTrainer, MatchesTheReferenceWithATeacherUnderEveryObjective) {
  for (const auto& [objective, name] : EnumNames<Objective>::value) {
    for (const RatioLevel level : {RatioLevel::Token, RatioLevel::Sequence}) {
      SCOPED_TRACE(name);
      AlgorithmConfig c = config();
      c.objective = objective;
      c.ratio = level;
      c.distillation = 0.7;
      c.reward_weight = 0.5;
      expect_the_plain_step(c);
    }
  }
}

TEST(TorchTrainer, RejectsAResponseWithoutScoresOfTheTeacher) {
  AlgorithmConfig c = config();
  c.name = AlgorithmName::Opd;
  auto batch = tests::training_batch(2);
  batch[3].reference_logprobs.clear();
  const auto updated = engine_of(c)->update(batch);
  ASSERT_FALSE(updated);
  EXPECT_NE(updated.error().context.find("no reference log-probs"), std::string::npos);
}

TEST(TorchTrainer, InterpolatesTheProximalPolicyExactlyForATokenOfTheCurrentVersion) {
  auto batch = tests::training_batch(2);
  actors::Weights weights = tests::tiny_weights();
  actors::Transformer network(weights);
  for (TrainSample& s : batch) {
    actors::Pack pack;
    pack.add_prompt(s.prompt);
    pack.add_response(s.response);
    const auto p = network.forward(pack, 1.0, actors::Graph::Discard);
    s.behaviour_logprobs.assign(p.begin(), p.end());
  }
  AlgorithmConfig recomputed = config(), interpolated = config();
  recomputed.name = AlgorithmName::DecoupledPpo;
  interpolated.name = AlgorithmName::A3po;
  const auto a = engine_of(recomputed), b = engine_of(interpolated);
  ASSERT_TRUE(a->update(batch) && b->update(batch));
  const auto expected = weights_of(*a), found = weights_of(*b);
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1e-5);
}

TEST(TorchTrainer, StepsDifferentlyUnderEachObjective) {
  std::vector<std::vector<float>> all;
  for (const auto& [objective, name] : EnumNames<Objective>::value) {
    AlgorithmConfig c = config();
    c.objective = objective;
    const auto e = engine_of(c);
    ASSERT_TRUE(e->update(tests::training_batch(2))) << name;
    all.push_back(weights_of(*e));
    for (std::size_t k = 0; k + 1 < all.size(); ++k) {
      double difference = 0;
      for (std::size_t i = 0; i < all[k].size(); ++i)
        difference = std::max(difference, std::abs(static_cast<double>(all[k][i] - all.back()[i])));
      EXPECT_GT(difference, 1e-3) << name << " differs from the previous objective by "
                                  << all.size() - 1 - k;
    }
  }
}

TEST(TorchTrainer, ReportsStalenessMetrics) {
  AlgorithmConfig c = config();
  c.minibatches = 1;
  c.objective = Objective::Decoupled;
  auto batch = tests::training_batch(3);
  actors::Weights weights = tests::tiny_weights();
  actors::Transformer network(weights);
  for (TrainSample& s : batch) {
    actors::Pack pack;
    pack.add_prompt(s.prompt);
    pack.add_response(s.response);
    const auto p = network.forward(pack, 1.0, actors::Graph::Discard);
    s.behaviour_logprobs.assign(p.begin(), p.end());
    for (float& b : s.behaviour_logprobs)
      b -= 0.1f;
  }
  UpdateMetrics m = engine_of(c)->update(batch).value();
  EXPECT_NEAR(m.ratio_mean, std::exp(0.1), 1e-5);
  EXPECT_NEAR(m.log_ratio, 0.1, 1e-5);
  EXPECT_NEAR(m.behaviour_weight, std::exp(0.1), 1e-5);
  EXPECT_EQ(m.capped_fraction, 0);
  EXPECT_EQ(m.clip_fraction, 0) << "the only minibatch is at the proximal policy";
  c.behaviour_weight_cap = 1.05;
  m = engine_of(c)->update(batch).value();
  EXPECT_EQ(m.capped_fraction, 1);
  EXPECT_EQ(m.behaviour_weight, 0) << "masked";
}

TEST(TorchTrainer, ReportsEffectiveSamplesAndSplitsTheRatioByVersion) {
  AlgorithmConfig c = config();
  c.minibatches = 1;
  auto batch = tests::training_batch(3);
  actors::Weights weights = tests::tiny_weights();
  actors::Transformer network(weights);
  double sum = 0, squares = 0, fresh = 0, stale = 0, tokens = 0, stale_tokens = 0;
  for (TrainSample& s : batch) {
    actors::Pack pack;
    pack.add_prompt(s.prompt);
    pack.add_response(s.response);
    const auto p = network.forward(pack, 1.0, actors::Graph::Discard);
    s.behaviour_logprobs.assign(p.begin(), p.end());
    // The first token of each response is old, and off by 0.5; the others by 0.01.
    s.ages.assign(s.response.size(), 0);
    s.ages.front() = 1;
    for (std::size_t t = 0; t < s.response.size(); ++t) {
      const double gap = t == 0 ? 0.5 : 0.01;
      s.behaviour_logprobs[t] -= static_cast<float>(gap);
      sum += std::exp(gap);
      squares += std::exp(2 * gap);
      (t == 0 ? stale : fresh) += gap;
      (t == 0 ? stale_tokens : tokens) += 1;
    }
  }
  const UpdateMetrics m = engine_of(c)->update(batch).value();
  EXPECT_NEAR(m.effective_samples, sum * sum / squares / (tokens + stale_tokens), 1e-5);
  EXPECT_NEAR(m.mismatch, fresh / tokens, 1e-5);
  EXPECT_NEAR(m.stale_ratio, stale / stale_tokens, 1e-5);
  EXPECT_NEAR(m.stale_tokens, stale_tokens / (tokens + stale_tokens), 1e-9);
  EXPECT_NEAR(
      m.log_ratio, (1 - m.stale_tokens) * m.mismatch + m.stale_tokens * m.stale_ratio, 1e-9);
}

TEST(TorchTrainer, StepsByTheRootOfTheEffectiveSamplesIfAsked) {
  const auto batch = tests::training_batch(2);
  AlgorithmConfig c = config();
  const auto whole = engine_of(c);
  const double effective = whole->update(batch).value().effective_samples;
  ASSERT_LT(effective, 0.95);
  AlgorithmConfig smaller = c;
  smaller.learning_rate *= std::sqrt(effective);
  c.scale_by_effective_samples = true;
  const auto scaled = engine_of(c), expected = engine_of(smaller);
  ASSERT_TRUE(scaled->update(batch) && expected->update(batch));
  EXPECT_EQ(weights_of(*scaled), weights_of(*expected));
  EXPECT_NE(weights_of(*scaled), weights_of(*whole));
}

TEST(TorchTrainer, StepsByTheLearningRateOfItsSchedule) {
  const auto batch = tests::training_batch(2);
  AlgorithmConfig c = config(), halved = c;
  halved.learning_rate /= 2;
  c.learning_rate_schedule = {.decay = Decay::Linear, .decay_steps = 2, .end = 0};
  const auto falling = engine_of(c), constant = engine_of(config()), half = engine_of(halved);
  const auto update = [&](Engine& e) { return e.update(batch).value().learning_rate; };
  const test::TemporaryFolder folder;

  EXPECT_EQ(update(*falling), config().learning_rate);
  EXPECT_EQ(update(*constant), config().learning_rate);
  EXPECT_EQ(weights_of(*falling), weights_of(*constant));
  ASSERT_TRUE(constant->save(folder.path()) && half->load(folder.path()))
      << "the second step begins here";
  EXPECT_EQ(update(*falling), config().learning_rate / 2);
  EXPECT_EQ(update(*half), config().learning_rate / 2);
  EXPECT_EQ(weights_of(*falling), weights_of(*half));
  const auto before = weights_of(*falling);
  EXPECT_EQ(update(*falling), 0.0);
  EXPECT_EQ(weights_of(*falling), before) << "after the decay";
}

TEST(TorchTrainer, AMaskedTokenDoesNotShiftTheVersionsOfTheOthers) {
  AlgorithmConfig c = config();
  c.minibatches = 1;
  auto batch = tests::training_batch(3);
  std::size_t old = 0, trained = 0;
  for (TrainSample& s : batch) {
    s.mask.assign(s.response.size(), 1);
    s.ages.assign(s.response.size(), 0);
    s.mask.front() = s.response.size() > 1 ? 0 : 1;
    s.ages.front() = 1;
    old += s.mask.front();
    trained += s.trained_tokens();
  }
  const UpdateMetrics m = engine_of(c)->update(batch).value();
  EXPECT_NEAR(m.stale_tokens, static_cast<double>(old) / static_cast<double>(trained), 1e-9);
}

/// Unsampled tokens at the end have no effect: every algorithm trains as without them.
TEST(LossMask, AnUnsampledTailHasNoEffect) {
  for (const auto& [name, text] : EnumNames<AlgorithmName>::value) {
    AlgorithmConfig algorithm = config();
    algorithm.name = name;
    algorithm.overlong_buffer = Tokens(0);  // It depends on the total length.
    const std::vector<TrainSample> batch = tests::training_batch(2);
    std::vector<TrainSample> longer = batch;
    for (TrainSample& s : longer) {
      s.mask.assign(s.response.size(), 1);
      s.response.insert(s.response.end(), {4, 5});
      s.behaviour_logprobs.insert(s.behaviour_logprobs.end(), {0, 0});
      s.reference_logprobs.insert(s.reference_logprobs.end(), {-9, 0});
      s.mask.insert(s.mask.end(), {0, 0});
    }
    const auto plain = engine_of(algorithm);
    const auto masked = engine_of(algorithm);
    const auto a = plain->update(batch);
    const auto b = masked->update(longer);
    ASSERT_TRUE(a && b) << text;
    EXPECT_NEAR(a->loss, b->loss, 1e-4 * (1 + std::abs(a->loss))) << text;
    EXPECT_NEAR(a->entropy, b->entropy, 1e-4) << text;
    const auto weights = weights_of(*plain);
    const auto of_masked = weights_of(*masked);
    EXPECT_NE(weights, weights_of(*engine_of(algorithm))) << text;
    for (std::size_t i = 0; i < weights.size(); ++i)
      ASSERT_NEAR(weights[i], of_masked[i], 2e-4) << text << " at " << i;
  }
}

TEST(LossMask, LaterTokensAttendToUnsampledOnes) {
  std::vector<TrainSample> batch = tests::training_batch(2);
  for (TrainSample& s : batch) {
    s.mask.assign(s.response.size(), 1);
    s.mask.front() = s.response.size() > 1 ? 0 : 1;
  }
  std::vector<TrainSample> other = batch;
  for (TrainSample& s : other) {
    if (s.mask.front() == 0)
      s.response.front() = s.response.front() == 2 ? 3 : 2;
  }
  const auto one = engine_of(config());
  const auto two = engine_of(config());
  ASSERT_TRUE(one->update(batch));
  ASSERT_TRUE(two->update(other));
  EXPECT_NE(weights_of(*one), weights_of(*two));
}

TEST(LossMask, RejectsAWrongLengthAndAMaskWithoutSampledTokens) {
  std::vector<TrainSample> batch = tests::training_batch(2);
  batch[1].mask.assign(batch[1].response.size() + 1, 1);
  const auto longer = engine_of(config())->update(batch);
  ASSERT_FALSE(longer);
  EXPECT_NE(longer.error().context.find("a mask of "), std::string::npos);
  for (TrainSample& s : batch)
    s.mask.assign(s.response.size(), 0);
  const auto none = engine_of(config())->update(batch);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().context.find("that the policy sampled"), std::string::npos);
}

}  // namespace
}  // namespace temper::trainer
