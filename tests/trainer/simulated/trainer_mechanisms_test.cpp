// Mechanisms of MoE training in the simulated trainer: activations, MTP modules.
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

UpdateCost cost_of(const actors::SimulationSettings& s) {
  return UpdateModel(s)(full_batch());
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

}  // namespace
}  // namespace temper::trainer
