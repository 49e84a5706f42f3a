// Mechanisms of MoE training in the simulated trainer: activations, MTP modules, balance of experts
// and of samples.
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "sim_hw/parallel/train_iteration.hpp"
#include "tests/support/simulated_drive.hpp"
#include "trainer/simulated/trainer_actor.hpp"

#include <gtest/gtest.h>

namespace temper::trainer {
namespace {

using actors::testing::settings_of;
using sim_hw::ActivationPolicy;

/// 718B on 128 cards: dp 4, in one expert group.
actors::SimulationSettings large() {
  actors::SimulationSettings s = settings_of("cm384", "pangu-ultra-moe-718b");
  s.cards = s.trainer_cards = 128;
  s.config.trainer = {.tp = 8, .pp = 8, .ep = 32, .micro_batch_tokens = 16384};
  s.config.response.kind = actors::LengthKind::Constant;
  s.config.response.mean = 15360;
  s.config.response.cap = Tokens(15360);
  return s;
}

std::vector<Tokens> full_batch() {
  return std::vector<Tokens>(512, Tokens(8192));
}

UpdateCost cost_of(const actors::SimulationSettings& s, std::uint64_t version = 0) {
  return UpdateModel(s)(full_batch(), PolicyVersion(version));
}

TEST(TrainerActivations, ChosenTensorsFitAndTakeLessTimeThanFullRecomputation) {
  actors::SimulationSettings s = large();
  const UpdateCost full = cost_of(s);
  EXPECT_EQ(full.swapped_activations, 0);
  for (const auto policy : {ActivationPolicy::Selective, ActivationPolicy::Auto}) {
    s.config.trainer.activations = policy;
    const UpdateCost chosen = cost_of(s);
    EXPECT_LT(chosen.total(), full.total());
    EXPECT_GT(chosen.memory.device.activations, full.memory.device.activations);
    EXPECT_LE(actors::trainer_memory(s).device.total(), actors::device_capacity(s));
    EXPECT_LE(actors::trainer_memory(s).host.total(), actors::host_capacity(s));
  }
}

TEST(TrainerActivations, SwappedTensorsAreInHostMemoryDuringAStepOnly) {
  actors::SimulationSettings s = large();
  const actors::ActorMemory full = actors::trainer_memory(s);
  s.config.trainer.activations = ActivationPolicy::Swap;
  const UpdateCost cost = cost_of(s);
  const actors::ActorMemory memory = actors::trainer_memory(s);
  EXPECT_EQ(cost.time.stage.recompute, 0);
  EXPECT_GT(cost.swapped_activations, 0);
  EXPECT_GT(memory.host.activations, 0);
  EXPECT_DOUBLE_EQ(memory.host.total(), full.host.total() + memory.host.activations);
  EXPECT_EQ(actors::parked(memory, actors::Gradients::Dropped).total(),
            actors::parked(full, actors::Gradients::Dropped).total());
}

TEST(TrainerActivations, AttentionThatRunsOnceIsCorrectedOnce) {
  // Sequences of 512 in micro-batches of 2048: all attention between them is taken away, once
  // forward and once backward where nothing recomputes it.
  actors::SimulationSettings s = large();
  s.config.trainer.micro_batch_tokens = 2048;
  s.config.response.mean = 1024;
  s.config.response.cap = Tokens(1024);
  const std::vector<Tokens> batch(256, Tokens(512));
  const UpdateCost twice = UpdateModel(s)(batch);
  s.config.trainer.activations = ActivationPolicy::Auto;
  const UpdateCost once = UpdateModel(s)(batch);
  ASSERT_EQ(once.time.stage.recompute, 0);  // At this size everything is kept.
  const double backward = sim_hw::make_device(s.cluster).k.attention_backward;
  EXPECT_NEAR(once.attention_correction / twice.attention_correction,
              (1 + backward) / (2 + backward),
              1e-9);
}

TEST(TrainerMtp, ModulesAreTrainedAndNotServed) {
  actors::SimulationSettings s = large();
  const double without = cost_of(s).total();
  const double memory = actors::trainer_memory(s).device.total();
  s.config.trainer.mtp = true;
  EXPECT_EQ(actors::trained_model(s).mtp_layers, 1);
  EXPECT_EQ(actors::served_model(s).mtp_layers, 0);
  EXPECT_GT(cost_of(s).total(), without);
  EXPECT_GE(actors::trainer_memory(s).device.total(), memory);
  s.model.mtp_layers = 0;
  const Status status = actors::check_trainer(s);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().context,
            "mtp = true, but openPangu-Ultra-MoE-718B has no MTP modules; nearest: mtp = false");
}

TEST(TrainerMtp, CountingModulesAsLayersBalancesTheStages) {
  actors::SimulationSettings s = large();
  s.config.trainer.vpp = 2;
  s.config.trainer.layer_balance = sim_hw::LayerBalance::Even;
  s.config.trainer.mtp = true;
  const double even = cost_of(s).total();
  s.config.trainer.layer_balance = sim_hw::LayerBalance::Counted;
  EXPECT_LT(cost_of(s).total(), even);
}

TEST(TrainerExperts, ThatMigrateCatchUpWithTheirLoads) {
  actors::SimulationSettings s = large();
  const UpdateCost balanced = cost_of(s, 3);
  EXPECT_EQ(balanced.experts.imbalance, 1);
  s.config.experts.loads = actors::ExpertLoadKind::Drifting;
  const UpdateCost original = cost_of(s, 3);
  EXPECT_GT(original.experts.imbalance, 1.2);
  EXPECT_GT(original.time.stage.experts, 1.2 * balanced.time.stage.experts);
  EXPECT_EQ(original.expert_migration, 0);
  EXPECT_EQ(original.sent.total(), balanced.sent.total());  // As many copies, elsewhere.
  s.config.experts.placement = actors::ExpertPlacing::Predicted;
  EXPECT_EQ(cost_of(s, 0).total(), [&] {
    auto before = s;
    before.config.experts.placement = actors::ExpertPlacing::Original;
    return cost_of(before, 0).total();
  }());  // No load has been seen before the first step.
  UpdateModel model(s);
  const UpdateCost second = model(full_batch(), PolicyVersion(1));
  EXPECT_GT(second.expert_migration, 0);
  EXPECT_LT(second.experts.imbalance, 1.2);
  EXPECT_LT(cost_of(s, 3).total(), original.total());
}

TEST(TrainerExperts, WaitLessInAnExchangeTheSmallerTheScopeOfTheLoss) {
  actors::SimulationSettings s = large();
  s.config.trainer.ep = 16;  // Two of four replicas share experts.
  s.config.experts.sequence_spread = 0.5;
  const auto busiest = [&](sim_hw::BalanceLoss over, double strength) {
    s.config.trainer.mechanisms.balance_loss = over;
    s.config.experts.loss_strength = strength;
    return cost_of(s, 1).experts.imbalance;
  };
  const double free = busiest(sim_hw::BalanceLoss::Everywhere, 0);
  EXPECT_GT(free, 1.1);
  EXPECT_EQ(busiest(sim_hw::BalanceLoss::MicroBatch, 0), free);
  const double everywhere = busiest(sim_hw::BalanceLoss::Everywhere, 4);
  const double group = busiest(sim_hw::BalanceLoss::ExpertGroup, 4);
  const double own = busiest(sim_hw::BalanceLoss::MicroBatch, 4);
  EXPECT_LT(everywhere, free);
  EXPECT_LT(group, everywhere);
  EXPECT_LT(own, group);
  EXPECT_GT(own, 1);
  EXPECT_LT(busiest(sim_hw::BalanceLoss::ExpertGroup, 16), group);
}

TEST(TrainerExperts, MemoryIsPlannedForTheBusiestDevice) {
  actors::SimulationSettings s = large();
  const double balanced = actors::trainer_memory(s).device.total();
  s.config.experts.loads = actors::ExpertLoadKind::Drifting;
  EXPECT_GT(actors::trainer_memory(s).device.total(), balanced);
}

TEST(TrainerSamples, WaitLessTheBetterTheyAreDealt) {
  actors::SimulationSettings s = large();
  s.config.response.cap = Tokens(32768);
  std::vector<Tokens> batch;
  Random random(7, "lengths");
  for (int i = 0; i < 256; ++i)
    batch.emplace_back(256 + static_cast<std::int64_t>(random.below(30000)));
  const auto seconds = [&](actors::DataBalance balance) {
    s.config.trainer.data_balance = balance;
    return UpdateModel(s)(batch).total();
  };
  const double attention = seconds(actors::DataBalance::Attention);
  const double tokens = seconds(actors::DataBalance::Tokens);
  const double arrival = seconds(actors::DataBalance::Arrival);
  EXPECT_LE(attention, 1.001 * tokens);  // The linear model chooses; the cost model prices.
  EXPECT_LT(tokens, arrival);
}

}  // namespace
}  // namespace temper::trainer
