// A capacity factor in the simulated trainer: dropped copies, time, FLOP, bytes and
// metrics; and loads of training apart from those of engines.
#include "sim_hw/model/parameters.hpp"
#include "tests/trainer/simulated/waiting_trainer.hpp"

#include <cmath>

namespace temper::trainer {
namespace {

using actors::ExpertConfig;
using actors::ExpertLoadKind;
using actors::testing::settings_of;

/// 718B on 128 cards: dp 4, in one expert group of 32 devices, 2048 tokens a rank.
actors::SimulationSettings skewed(std::optional<double> factor) {
  actors::SimulationSettings s = settings_of("cm384", "pangu-ultra-moe-718b");
  s.cards = s.trainer_cards = 128;
  s.config.trainer = {.tp = 8, .pp = 8, .ep = 32, .micro_batch_tokens = 16384};
  s.config.trainer.capacity_factor = factor;
  s.config.response.kind = actors::LengthKind::Constant;
  s.config.response.mean = 15360;
  s.config.response.cap = Tokens(15360);
  s.config.experts.loads = ExpertLoadKind::Zipf;
  s.config.experts.exponent = 0.63;
  return s;
}

UpdateCost cost_of(const actors::SimulationSettings& s, std::uint64_t version = 0) {
  return UpdateModel(s)(std::vector<Tokens>(512, Tokens(8192)), PolicyVersion(version));
}

/// E[max(0, X - most)] of X ~ Binomial(n, q), by logarithms of factorials.
double excess(int n, double q, int most) {
  double sum = 0;
  for (int x = most + 1; x <= n; ++x) {
    sum += (x - most) * std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) +
                                 x * std::log(q) + (n - x) * std::log1p(-q));
  }
  return sum;
}

TEST(TrainerCapacity, DropsWhatTheLoadsOfItsVersionExceed) {
  // A rank has 2048 tokens with 8 copies, 64 for each of 256 experts: at 1.25, each takes 80.
  double sum = 0, dropped = 0;
  for (int rank = 1; rank <= 256; ++rank)
    sum += std::pow(rank, -0.63);
  for (int rank = 1; rank <= 256; ++rank)
    dropped += excess(2048, 8 * std::pow(rank, -0.63) / sum, 80) / (2048 * 8);
  EXPECT_GT(dropped, 0.25);
  const UpdateCost cost = cost_of(skewed(1.25), 3);
  EXPECT_NEAR(cost.experts.dropped, dropped, 1e-9);
  EXPECT_NEAR(cost.experts.dropped_most, dropped, 1e-9);  // Layers differ in the order of experts.
}

TEST(TrainerCapacity, BoundsTheTimeOfAStep) {
  const UpdateCost all = cost_of(skewed({}), 1);
  EXPECT_EQ(all.experts.dropped, 0);
  double before = cost_of(skewed(0.5), 1).total();
  for (const double factor : {1.0, 1.25, 2.0, 1e6}) {
    const UpdateCost cost = cost_of(skewed(factor), 1);
    EXPECT_LE(cost.experts.imbalance, factor * 1.01);  // The capacity is rounded up.
    EXPECT_GE(cost.total(), before) << factor;
    before = cost.total();
  }
  EXPECT_EQ(before, all.total());
  EXPECT_LT(cost_of(skewed(1), 1).time.stage.experts, 0.5 * all.time.stage.experts);
}

TEST(TrainerCapacity, DroppedCopiesAreNeitherFlopNorBytes) {
  const actors::SimulationSettings s = skewed(1);
  const UpdateCost all = cost_of(skewed({})), cost = cost_of(s);
  ASSERT_GT(cost.experts.dropped, 0.3);
  const double tokens = 512 * 8192.0;
  const double copies = tokens * 8.0 * static_cast<double>(s.model.moe_layers());
  const double of_copy = 6 * static_cast<double>(sim_hw::expert_parameters(s.model));
  EXPECT_NEAR(all.flops - cost.flops, cost.experts.dropped * copies * of_copy, 1e-9 * all.flops);
  EXPECT_LT(cost.sent.total(), all.sent.total());
  actors::SimulationSettings half = s;
  half.config.experts.loads = ExpertLoadKind::Balanced;
  half.config.trainer.capacity_factor = 0.5;
  EXPECT_NEAR(cost_of(half).experts.dropped, 0.5, 1e-6);
}

TEST(TrainerCapacity, MigrationBalancesWhatExpertsProcess) {
  actors::SimulationSettings s = skewed(2);
  const UpdateCost still = cost_of(s, 5);
  s.config.experts.placement = actors::ExpertPlacing::Predicted;
  const UpdateCost moved = cost_of(s, 5);
  EXPECT_EQ(moved.experts.dropped, still.experts.dropped);  // Of experts, wherever they are.
  EXPECT_LT(moved.experts.imbalance, still.experts.imbalance);
  EXPECT_DOUBLE_EQ(moved.experts.without_migration, still.experts.imbalance);
}

TEST(TrainerCapacity, VaryingExchangesDropMore) {
  actors::SimulationSettings s = skewed(1.25);
  s.config.experts.exponent = 0.1;
  const double even = cost_of(s, 1).experts.dropped;
  s.config.experts.sequence_spread = 0.5;
  const UpdateCost varying = cost_of(s, 1);
  EXPECT_GT(varying.experts.dropped, even + 0.02);
  s.config.trainer.capacity_factor = 1e6;
  const UpdateCost none = cost_of(s, 1);
  s.config.trainer.capacity_factor.reset();
  EXPECT_NEAR(none.experts.imbalance, cost_of(s, 1).experts.imbalance, 1e-12);
  EXPECT_LT(varying.experts.imbalance, none.experts.imbalance);
}

TEST(TrainerCapacity, TrainingHasLoadsOfItsOwn) {
  actors::SimulationSettings s = skewed({});
  s.config.trainer.experts = ExpertConfig{};
  EXPECT_EQ(cost_of(s, 2).experts.imbalance, 1);
  EXPECT_GT(actors::trainer_memory(skewed({})).device.total(),
            actors::trainer_memory(s).device.total());
  s.config.rollout = {.tp = 1, .ep = 64};
  s.rollout_cards = s.cards = 32;
  EXPECT_GT(actors::engine_experts(s).at(PolicyVersion(2), 1).imbalance, 3);
  s.config.trainer.experts = s.config.experts;
  EXPECT_EQ(cost_of(s, 2).total(), cost_of(skewed({}), 2).total());
  s.config.trainer.experts->loads = ExpertLoadKind::Trace;
  s.trainer_expert_trace.assign(256, 0.5 / 255);
  s.trainer_expert_trace[0] = 0.5;  // Its device has half of all and 7 / 255 of the rest.
  EXPECT_NEAR(cost_of(s, 2).experts.imbalance, 32 * (0.5 + 7 * 0.5 / 255), 1e-9);
}

/// Metrics of version 5's step, after a start from there. The loads of the layers drift.
actors::UpdateMetrics metrics_of(const actors::SimulationSettings& s, bool prepared) {
  SimulatedTrainer trainer(s, PolicyVersion(5));
  actors::testing::Driven d(trainer);
  EXPECT_TRUE(d.start());
  EXPECT_TRUE(d.run());
  if (prepared) {
    EXPECT_TRUE(d.send(half_of_batch()));
    EXPECT_TRUE(d.run());
  }
  EXPECT_TRUE(d.send(batch()));
  EXPECT_TRUE(d.run());
  return d.all<actors::Trained>().at(0).second.metrics;
}

TEST(TrainerCapacity, AStepReportsTheSharesOfItsVersion) {
  actors::SimulationSettings s = skewed(1.25);
  s.config.experts.loads = ExpertLoadKind::Drifting;
  const UpdateCost cost = cost_of(s, 5);
  ASSERT_GT(cost.experts.dropped_most, cost.experts.dropped);
  ASSERT_NE(cost_of(s, 4).experts.dropped, cost.experts.dropped);
  for (const bool prepared : {false, true}) {
    const actors::UpdateMetrics metrics = metrics_of(s, prepared);
    ASSERT_TRUE(metrics.experts);
    EXPECT_EQ(metrics.experts->dropped, cost.experts.dropped);
    EXPECT_EQ(metrics.experts->dropped_most, cost.experts.dropped_most);
  }
  EXPECT_FALSE(metrics_of(skewed({}), false).experts);
}

}  // namespace
}  // namespace temper::trainer
