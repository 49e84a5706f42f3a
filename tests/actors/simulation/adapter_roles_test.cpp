// Adapters of a simulated run: memory of each role, and moves of weights.
#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "sim_hw/model/parameters.hpp"
#include "tests/support/adapter_targets.hpp"
#include "tests/support/simulated_drive.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

/// 32 cards of a CM384 (64 devices, 16 replicas) with the 718B model, and a trainer of 128 cards.
SimulationSettings pangu() {
  SimulationSettings s = testing::settings_of("cm384", "pangu-ultra-moe-718b");
  s.cards = s.rollout_cards = 32;
  s.trainer_cards = 128;
  s.config.rollout.tp = 4;
  s.config.rollout.ep = 64;
  s.config.rollout.kv_share = 0.5;
  s.config.trainer = {.tp = 8, .pp = 8, .ep = 32};
  s.config.trainer.optimizer_on_host = false;
  return s;
}

SimulationSettings with_adapter(std::int64_t rank,
                                const test::Targets& targets = test::kLatentTargets) {
  SimulationSettings s = pangu();
  s.adapter = sim_hw::make_adapter(s.model, rank, targets).value();
  return s;
}

constexpr double kDevices = 64;  // Of the engine.

TEST(AdapterRoles, APublicationHasTheBytesOfTheAdapterAlone) {
  // On one device per replica, an engine holds attention once per replica, and each expert once.
  SimulationSettings s = with_adapter(8);
  s.config.rollout.tp = 1;
  s.cards = s.rollout_cards = 32;
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  const double once =
      2.0 * static_cast<double>(sim_hw::adapter_parameters(served_model(s), *s.adapter));
  EXPECT_NEAR(publish_weights(fabric, s).received.total(),
              version_bytes(s) * kDevices,
              1e-6 * version_bytes(s) * kDevices);
  EXPECT_GT(version_bytes(s) * kDevices, once);
  s.adapter = sim_hw::make_adapter(s.model, 8, test::Targets{"o_proj"}).value();
  const double attention =
      2.0 * static_cast<double>(sim_hw::adapter_parameters(served_model(s), *s.adapter));
  EXPECT_NEAR(publish_weights(fabric, s).received.total(),
              kDevices * attention,
              1e-9 * kDevices * attention);
}

TEST(AdapterRoles, EveryDeviceReceivesWhatItHolds) {
  for (const std::int64_t rank : {8, 64}) {
    const SimulationSettings s = with_adapter(rank);
    const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
    const double held = version_bytes(s) * kDevices;
    EXPECT_NEAR(publish_weights(fabric, s).received.total(), held, 1e-9 * held);
    EXPECT_EQ(swap_bytes(s), version_bytes(s));
  }
  EXPECT_NEAR(version_bytes(with_adapter(64)), 8 * version_bytes(with_adapter(8)), 1);
}

TEST(AdapterRoles, TheFormatOfTheEngineIsThatOfTheFrozenWeightsOnly) {
  SimulationSettings s = with_adapter(8);
  const double wide = rollout_memory(s).device.weights - version_bytes(s);
  EXPECT_NEAR(wide, rollout_memory(pangu()).device.weights, 1);
  const double version = version_bytes(s);
  s.config.rollout.weights = sim_hw::WeightFormat::Int8;
  EXPECT_EQ(version_bytes(s), version);
  EXPECT_NEAR(rollout_memory(s).device.weights - version, wide / 2, 1);
}

TEST(AdapterRoles, TheTrainerHasLessMemoryAndTheReferenceTheSame) {
  double before = 0;
  for (const std::int64_t rank : {1, 8, 64}) {
    const SimulationSettings s = with_adapter(rank);
    const ActorMemory trainer = trainer_memory(s);
    EXPECT_LT(trainer.device.total(), trainer_memory(pangu()).device.total());
    EXPECT_LT(trainer.device.optimizer, trainer_memory(pangu()).device.optimizer / 10);
    EXPECT_GT(trainer.device.total(), before);
    before = trainer.device.total();
    EXPECT_EQ(reference_memory(s).device.total(), reference_memory(pangu()).device.total());
  }
}

TEST(AdapterRoles, OlderVersionsAreOlderAdapters) {
  SimulationSettings s = with_adapter(8);
  s.older_versions = 2;
  EXPECT_EQ(rollout_memory(s).device.older_weights, 2 * version_bytes(s));
  SimulationSettings all = pangu();
  const double cache = rollout_memory(all).device.kv_cache;
  all.older_versions = s.older_versions = 1;
  EXPECT_LT(rollout_memory(all).device.kv_cache, 0.5 * cache);
  EXPECT_GT(rollout_memory(s).device.kv_cache, 0.95 * cache);
}

TEST(AdapterRoles, ARoleSwitchMovesFrozenWeightsAsTrainedOnes) {
  SimulationSettings full = pangu(), s = with_adapter(8);
  full.colocated = s.colocated = true;
  full.rollout_cards = s.rollout_cards = 128;
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  EXPECT_GE(publish_seconds(fabric, s), publish_seconds(fabric, full));
  EXPECT_EQ(swap_bytes(s), 0);
  const double weights = trainer_memory(full).device.weights;
  EXPECT_GT(moved_bytes(trainer_memory(s)), weights);
  EXPECT_LT(moved_bytes(trainer_memory(s)), moved_bytes(trainer_memory(full)));
  // An engine that goes on generating while others switch has the frozen weights.
  EXPECT_LT(publish_beside(fabric, s).seconds, 0.1 * publish_beside(fabric, full).seconds);
  EXPECT_EQ(renewing(s).host.weights, version_bytes(s));
}

TEST(AdapterRoles, ACheckpointHasTheAdapter) {
  const SimulationSettings s = with_adapter(8);
  EXPECT_EQ(trained_parameters(s), sim_hw::adapter_parameters(served_model(s), *s.adapter));
  EXPECT_EQ(trained_parameters(pangu()), sim_hw::count_parameters(pangu().model).total());
}

}  // namespace
}  // namespace temper::actors
