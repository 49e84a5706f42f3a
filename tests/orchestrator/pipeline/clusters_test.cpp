// Several clusters of different cards in one configuration: placement of roles, and refusals.
#include "orchestrator/pipeline/clusters.hpp"

#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "orchestrator/pipeline/validate.hpp"
#include "tests/support/small_pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// Engines and reference on 8 cards of cm384, the trainer on 16 H800.
PipelineConfig two_clusters() {
  PipelineConfig c = testing::small_pipeline();
  c.placement.cards = 24;
  c.placement.rollout_cards = 4;
  c.placement.reference_cards = 4;
  c.simulation.cluster.clear();
  c.simulation.clusters = {{"cm384", 8, {}}, {"nvidia-h800", 16, {}}};
  c.simulation.between = {BytesPerSecond(10e9), std::chrono::microseconds(100)};
  return c;
}

std::string broken(const PipelineConfig& c) {
  std::string out;
  for (const BrokenRule& rule : validate(c))
    out += rule.keys.front() + ": " + rule.message + "\n";
  return out;
}

TEST(Clusters, ARoleHasTheHardwareOfItsCards) {
  const auto pipeline = resolve(two_clusters());
  ASSERT_TRUE(pipeline) << pipeline.error().context;
  EXPECT_EQ(broken(two_clusters()), "");
  for (const ActorSpec& slot : pipeline->slots) {
    const actors::SimulationSettings own = actor_settings(*pipeline, slot);
    const bool trains = slot.role == actors::RoleKind::Trainer || slot.cards.empty();
    EXPECT_EQ(own.cluster.name, trains ? "nvidia-h800" : "cm384") << slot.name;
  }
  // 16 H800 from a description of one node of 8: two nodes.
  EXPECT_EQ(pipeline->simulation->clusters->trainer.hardware.nodes, 2);
  EXPECT_EQ(pipeline->simulation->clusters->trainer.port, BytesPerSecond(50e9));
  EXPECT_EQ(pipeline->simulation->clusters->rollout.port, BytesPerSecond(24.5e9));
}

TEST(Clusters, DevicesOfANodeShareTheLinksOfTheirHostsIfToldSo) {
  PipelineConfig c = two_clusters();
  const auto hosts = [&] {
    const auto pipeline = resolve(c);
    EXPECT_TRUE(pipeline);
    return std::pair(pipeline->simulation->clusters->rollout.hardware.host,
                     pipeline->simulation->clusters->trainer.hardware.host);
  };
  const auto [cm384, h800] = hosts();
  EXPECT_EQ(cm384.to_device, BytesPerSecond(151e9));
  c.simulation.shared_host_links = true;
  const auto [shared, separate] = hosts();
  EXPECT_EQ(shared.to_device, BytesPerSecond(640e9 / 16));  // 16 dies of a node.
  EXPECT_EQ(shared.from_device, BytesPerSecond(640e9 / 16));
  EXPECT_EQ(separate.to_device, h800.to_device);  // Each GPU has its own link.
}

TEST(Clusters, TheEnginesHaveTheFirstUnlessToldOtherwise) {
  PipelineConfig c = two_clusters();
  c.placement.rollout_cards = c.placement.reference_cards = 0;
  c.reference.replicas = 0;
  EXPECT_EQ(resolve_placement(c).rollout.size(), 8U);
  EXPECT_EQ(resolve_placement(c).trainer.size(), 16U);
  EXPECT_EQ(broken(c), "");
}

TEST(Clusters, EveryPhaseIsHeldAgainstItsOwnCards) {
  const auto pipeline = resolve(two_clusters());
  ASSERT_TRUE(pipeline);
  const auto phases = actors::memory_phases(simulated_placement(*pipeline));
  ASSERT_TRUE(phases) << phases.error().context;
  for (const actors::PhaseLedger& phase : *phases) {
    EXPECT_EQ(phase.device_capacity, phase.group == "trainer" ? 80e9 : 64e9) << phase.group;
    // 2 TB over 8 devices of a node, 1.5 TB over 16.
    EXPECT_EQ(phase.host_capacity, phase.group == "trainer" ? 250e9 : 93.75e9) << phase.group;
  }
}

TEST(Clusters, AModelThatFitsTheOneAndNotTheOtherIsToldWithTheOther) {
  PipelineConfig c = two_clusters();
  c.simulation.model = "qwen3-32b";  // 65.5 GB: one H800 holds it, a die of cm384 does not
  c.simulation.trainer.tp = 8;
  c.simulation.trainer.pp = 2;
  const std::string text = broken(c);
  EXPECT_NE(text.find("rollout"), std::string::npos) << text;
  EXPECT_NE(text.find("nearest: simulation.rollout.tp = 4"), std::string::npos) << text;
}

TEST(Clusters, RolesOnTheSameCardsAreRefusedWithTheNearestMode) {
  for (const PlacementMode mode :
       {PlacementMode::Colocated, PlacementMode::Fused, PlacementMode::Hybrid}) {
    PipelineConfig c = two_clusters();
    c.placement.mode = mode;
    if (mode != PlacementMode::Hybrid)
      c.placement.rollout_cards = c.placement.reference_cards = 0;
    const std::string text = broken(c);
    EXPECT_NE(text.find("placement.mode: `" + std::string(name_of(mode)) + "` runs engines"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("nearest: `placement.mode: separate`"), std::string::npos) << text;
  }
}

TEST(Clusters, ARoleOnTwoKindsIsToldWhichCardsWouldDo) {
  PipelineConfig c = two_clusters();
  c.placement.rollout_cards = 6;
  c.placement.reference_cards = 0;
  c.reference.replicas = 0;
  const std::string text = broken(c);
  EXPECT_NE(text.find("placement.trainer: the trainer has cards of cm384 (cards 6 to 7) and "
                      "nvidia-h800 (cards 8 to 23), expected cards of one kind; nearest: "
                      "the 16 cards 8 to 23 of nvidia-h800"),
            std::string::npos)
      << text;
}

TEST(Clusters, WhatIsMissingOrTooMuchIsNamed) {
  const auto expect = [](const char* what, const auto& change) {
    PipelineConfig c = two_clusters();
    change(c);
    const std::string text = broken(c);
    EXPECT_NE(text.find(what), std::string::npos) << what << "\n" << text;
  };
  expect("simulation.cluster: simulation.clusters already lists the hardware of all cards",
         [](PipelineConfig& c) { c.simulation.cluster = "cm384"; });
  expect("simulation.between.bandwidth: required for several clusters",
         [](PipelineConfig& c) { c.simulation.between.bandwidth = {}; });
  expect(
      "placement.cards: the clusters have 24 cards in total (simulation.clusters), found 20; "
      "nearest: 24",
      [](PipelineConfig& c) { c.placement.cards = 20; });
  expect(
      "simulation.clusters[1].hardware: unknown hardware `nvidia-h880`; did you mean "
      "`nvidia-h800`?",
      [](PipelineConfig& c) { c.simulation.clusters[1].hardware = "nvidia-h880"; });
  expect("simulation.clusters[0].cards: cm384 has 384 cards, found 385; nearest: 384",
         [](PipelineConfig& c) { c.simulation.clusters[0].cards = 385; });
  expect("simulation.clusters[0].cards: required",
         [](PipelineConfig& c) { c.simulation.clusters[0].cards = 0; });
  expect("simulation.faults.rate: faults can be simulated in one cluster only",
         [](PipelineConfig& c) { c.simulation.faults.rate = 1; });
  expect("simulation.clusters[2].cards: cards 24 to 31 of nvidia-h200 have no role",
         [](PipelineConfig& c) {
           c.simulation.clusters.push_back({"nvidia-h200", 8, {}});
           c.placement.cards = 32;
           c.placement.rollout_cards = c.placement.reference_cards = 0;
           c.reference.replicas = 0;
           for (std::uint32_t card = 0; card < 8; ++card)
             c.placement.rollout.emplace_back(card);
           for (std::uint32_t card = 8; card < 24; ++card)
             c.placement.trainer.emplace_back(card);
         });
}

TEST(Clusters, OneInTheListIsWhatTheKeyForOneIs) {
  PipelineConfig listed = testing::small_pipeline();
  const auto one = resolve(listed);
  listed.simulation.cluster.clear();
  listed.simulation.clusters = {{"cm384", listed.placement.cards, {}}};
  const auto pipeline = resolve(listed);
  ASSERT_TRUE(pipeline) << pipeline.error().context;
  EXPECT_EQ(broken(listed), "");
  EXPECT_FALSE(pipeline->simulation->clusters);
  EXPECT_EQ(pipeline->simulation->cluster.name, one->simulation->cluster.name);
  EXPECT_EQ(card_kinds(listed).size(), 0U);
}

TEST(Clusters, TwoOfOneKindHaveNumberedNames) {
  PipelineConfig c = two_clusters();
  c.simulation.clusters[0].hardware = "nvidia-h800";
  const std::vector<CardKind> kinds = card_kinds(c);
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].name, "nvidia-h800-0");
  EXPECT_EQ(kinds[1].name, "nvidia-h800-1");
  EXPECT_EQ(kind_text(kinds, CardId(8)), " of nvidia-h800-1");
  EXPECT_EQ(broken(c), "");
}

}  // namespace
}  // namespace temper::orchestrator
