// Redundant experts of simulated engines: layouts, memory, publications and imbalance.
#include "actors/simulation/expert_imbalance.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "sim_hw/model/parameters.hpp"
#include "tests/support/adapter_targets.hpp"
#include "tests/support/simulated_drive.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

/// An engine of 64 devices with the 718B model, 4 experts on each device.
SimulationSettings engine(std::int64_t redundant) {
  SimulationSettings s = testing::settings_of("cm384", "pangu-ultra-moe-718b");
  s.trainer_cards = 128;
  s.cards = s.rollout_cards = 32;
  s.config.rollout.tp = 1;
  s.config.rollout.ep = 64;
  s.config.rollout.redundant_experts = redundant;
  s.config.trainer = {.tp = 8, .pp = 8, .ep = 32};
  return s;
}

/// Bytes of one expert of every layer.
double expert_bytes(const SimulationSettings& s) {
  return 2.0 * static_cast<double>(sim_hw::expert_parameters(s.model) * s.model.moe_layers());
}

std::string refusal(const SimulationSettings& s) {
  const Status status = check_rollout(s);
  return status ? "" : status.error().context;
}

TEST(RedundantExperts, ACountThatDoesNotFitIsRefusedWithTheNearest) {
  EXPECT_EQ(refusal(engine(0)), "");
  EXPECT_EQ(refusal(engine(64)), "");
  EXPECT_EQ(refusal(engine(32)),
            "redundant_experts=32: 288 experts and their copies do not divide over the ep=64 "
            "devices; nearest: redundant_experts=0");
  EXPECT_EQ(refusal(engine(56)),
            "redundant_experts=56: 312 experts and their copies do not divide over the ep=64 "
            "devices; nearest: redundant_experts=64");
  EXPECT_EQ(refusal(engine(100)),
            "redundant_experts=100: 356 experts and their copies do not divide over the ep=64 "
            "devices; nearest: redundant_experts=128");
  SimulationSettings s = engine(64);
  s.config.rollout.ep = 1;
  EXPECT_EQ(refusal(s),
            "redundant_experts=64: more than 0 copies put an expert on one of the ep=1 devices "
            "twice; nearest: redundant_experts=0");
  // As CloudMatrix-Infer: 32 redundant experts, one slot on each of 288 devices.
  s = engine(32);
  s.cards = s.rollout_cards = 144;
  s.config.rollout.ep = 288;
  EXPECT_EQ(refusal(s), "");
  s.config.rollout.redundant_experts = 0;
  EXPECT_EQ(refusal(s), "ep=288 does not divide the 256 experts; nearest: ep=32");
  SimulationSettings dense = testing::settings_of("cm384", "qwen2.5-7b");
  dense.config.rollout.redundant_experts = 8;
  EXPECT_EQ(refusal(dense),
            "redundant_experts=8: " + dense.model.name +
                " has no routed experts; nearest: redundant_experts=0");
}

TEST(RedundantExperts, TakeMemoryAndLeaveLessForTheCache) {
  const SimulationSettings without = engine(0), with = engine(128);  // 2 more on each device.
  const double more = decode_memory(with).device.weights - decode_memory(without).device.weights;
  EXPECT_NEAR(more, 2 * expert_bytes(with), 1e-9 * more);
  EXPECT_NEAR(version_bytes(with) - version_bytes(without), more, 1e-9 * more);
  EXPECT_LT(kv_tokens(with), kv_tokens(without));
}

TEST(RedundantExperts, EveryDeviceReceivesItsCopiesWithAVersion) {
  for (const std::int64_t redundant : {0, 64, 128}) {
    const SimulationSettings s = engine(redundant);
    const double held = version_bytes(s) * 64;
    const double sent = publish_weights(sim_hw::make_fabric(s.cluster), s).received.total();
    EXPECT_NEAR(sent, held, 1e-3 * held) << redundant;  // Norms are spread evenly there.
  }
  const sim_hw::Fabric fabric = sim_hw::make_fabric(engine(0).cluster);
  const double more = publish_weights(fabric, engine(128)).received.total() -
                      publish_weights(fabric, engine(0)).received.total();
  EXPECT_NEAR(more, 128 * expert_bytes(engine(0)), 1e-6 * more);
  EXPECT_GT(publish_seconds(fabric, engine(128)), publish_seconds(fabric, engine(0)));
}

TEST(RedundantExperts, AdaptersOfExpertsAreCopiedToo) {
  SimulationSettings s = engine(0);
  s.adapter =
      sim_hw::make_adapter(s.model, 8, test::Targets{"gate_proj", "up_proj", "down_proj"}).value();
  const double once = version_bytes(s);
  s.config.rollout.redundant_experts = 64;
  const double held = version_bytes(s) * 64;
  EXPECT_GT(version_bytes(s), once);
  EXPECT_NEAR(
      publish_weights(sim_hw::make_fabric(s.cluster), s).received.total(), held, 1e-6 * held);
}

TEST(RedundantExperts, StayWhereTheFirstVersionsLoadsPutThem) {
  SimulationSettings s = engine(64);
  s.config.experts.loads = ExpertLoadKind::Zipf;
  s.config.experts.exponent = 0.63;
  s.config.experts.drift = 0;
  ExpertImbalance still = engine_experts(s);
  const double blind = still.at(PolicyVersion(0), kAnyGainPays).imbalance;
  const double placed = still.at(PolicyVersion(1), kAnyGainPays).imbalance;
  EXPECT_GT(blind, 2.5);
  EXPECT_GE(placed, 1);
  EXPECT_LT(placed, 1.05);
  EXPECT_EQ(still.at(PolicyVersion(9), kAnyGainPays).imbalance, placed);
  // With drift, loads leave their places, unless they are predicted.
  s.config.experts.drift = 0.05;
  ExpertImbalance stale = engine_experts(s);
  s.config.experts.placement = ExpertPlacing::Predicted;
  ExpertImbalance renewed = engine_experts(s);
  EXPECT_EQ(stale.at(PolicyVersion(0), 1).imbalance, renewed.at(PolicyVersion(0), 1).imbalance);
  EXPECT_GT(stale.at(PolicyVersion(20), 1).imbalance,
            1.1 * renewed.at(PolicyVersion(20), 1).imbalance);
  EXPECT_EQ(stale.at(PolicyVersion(20), 1).migrations, 0);
}

TEST(RedundantExperts, OneSlotPerDeviceCannotBalanceEqualLoads) {
  // 288 slots of 256 equal loads: the busiest devices have one whole expert, 288 / 256 of the mean.
  SimulationSettings s = engine(32);
  s.config.rollout.ep = 288;
  EXPECT_DOUBLE_EQ(engine_experts(s).at(PolicyVersion(0), 1).imbalance, 1.125);
  EXPECT_FALSE(engine_experts(engine(0)).any());
}

}  // namespace
}  // namespace temper::actors
