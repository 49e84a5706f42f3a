// Duration of the publication of weights, by relay and by broadcast.
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/model/parameters.hpp"
#include "tests/support/simulated_drive.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

constexpr std::size_t kSupernode = 2;  // Among the levels of cm384.

/// `engines` of 4 cards (8 dies, tp 2) and a trainer of 16 cards: 32 dies in 4 copies of tp 8.
SimulationSettings with_engines(std::int64_t engines, PublicationMode mode) {
  SimulationSettings s = testing::settings_of("cm384", "qwen3-32b");
  s.cards = 4;
  s.rollout_cards = 4 * engines;
  s.trainer_cards = 16;
  s.config.rollout.tp = 2;
  s.config.trainer.tp = 8;
  s.config.publication.mode = mode;
  return s;
}

double seconds_of(const SimulationSettings& s) {
  return publish_seconds(sim_hw::make_fabric(s.cluster), s);
}

TEST(Publication, IsRelayedByDefault) {
  const SimulationSettings s = testing::settings_of("cm384", "qwen3-32b");
  EXPECT_EQ(s.config.publication.mode, PublicationMode::Relay);
}

TEST(Publication, RelayTimeDoesNotDependOnTheNumberOfEngines) {
  const double few = seconds_of(with_engines(2, PublicationMode::Relay));
  const double many = seconds_of(with_engines(64, PublicationMode::Relay));
  EXPECT_NEAR(many, few, 0.05 * few);
}

TEST(Publication, TimeIsInverseToTheLinkShare) {
  SimulationSettings s = with_engines(2, PublicationMode::Relay);
  const double whole = seconds_of(s);
  s.config.publication.link_share = 0.1;
  EXPECT_NEAR(seconds_of(s), 10 * whole, 0.02 * whole);  // But for the start-ups of copies.
  s.colocated = true;
  const double resharded = seconds_of(s);
  s.config.publication.link_share = 1;
  EXPECT_NEAR(resharded, 10 * seconds_of(s), 1e-9);
}

sim_hw::FrameworkSpec framework() {
  sim_hw::FrameworkSpec out;
  out.publication = {{"gather", std::chrono::seconds(2), {}, {}, {}},
                     {"load", {}, std::chrono::microseconds(100), {}, {}},
                     {"copy", {}, {}, {}, BytesPerSecond(1e9)},
                     {"send", {}, {}, BytesPerSecond(10e9), {}}};
  out.role_switch = {{"pin", {}, {}, {}, BytesPerSecond(2e9)}};
  return out;
}

TEST(Publication, AFrameworkAddsItsStagesToTheCopies) {
  SimulationSettings s = with_engines(2, PublicationMode::Relay);
  s.config.publication.link_share = 0.1;
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  const double publish = publish_seconds(fabric, s), swap = swap_seconds(fabric, s);
  const double beside = publish_beside(fabric, s).seconds;
  const double onload = onload_seconds(fabric, s, 6e9), offload = offload_seconds(fabric, s, 6e9);
  const double idle = onload_seconds(fabric, s, 0);
  s.framework.emplace();
  EXPECT_EQ(publish_seconds(fabric, s), publish);
  EXPECT_EQ(onload_seconds(fabric, s, 6e9), onload);
  s.framework = framework();
  // 64 layers of 12 tensors; a version in BF16, of which each device of tp 2 holds half.
  const double version = 2 * sim_hw::as_double(sim_hw::count_parameters(s.model).total());
  const double stages = 2 + 64 * 12 * 100e-6 + version_bytes(s) / 1e9 + version / 10e9;
  EXPECT_NEAR(publish_seconds(fabric, s), publish + stages, 1e-3 * stages);
  EXPECT_NEAR(publish_beside(fabric, s).seconds, beside + stages, 1e-3 * stages);
  EXPECT_EQ(swap_seconds(fabric, s), swap);
  EXPECT_DOUBLE_EQ(onload_seconds(fabric, s, 6e9), onload + 3);
  EXPECT_DOUBLE_EQ(offload_seconds(fabric, s, 6e9), offload + 3);
  EXPECT_EQ(onload_seconds(fabric, s, 0), idle);  // Nothing moves.
}

TEST(Publication, AFrameworkNamesTheTensorsOfWhatIsPublished) {
  SimulationSettings s = with_engines(2, PublicationMode::Relay);
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  const auto added = [&](const SimulationSettings& plain) {
    SimulationSettings with = plain;
    with.framework.emplace().publication = {{"load", {}, std::chrono::seconds(1), {}, {}}};
    return publish_seconds(fabric, with) - publish_seconds(fabric, plain);
  };
  EXPECT_NEAR(added(s), 64 * 12, 1e-6);
  s.adapter = *sim_hw::make_adapter(s.model, 8, std::vector<std::string>{"q_proj"});
  EXPECT_NEAR(added(s), 64 * 2, 1e-6);  // The base stays in the engine.
  s.colocated = true;
  EXPECT_NEAR(added(s), 64 * (12 + 2), 1e-6);
}

TEST(Publication, BroadcastGrowsWithTheNumberOfEngines) {
  // The senders' ports are the longest stage by far, so that twice the engines take twice the time.
  const double once = seconds_of(with_engines(16, PublicationMode::Broadcast));
  const double twice = seconds_of(with_engines(32, PublicationMode::Broadcast));
  const double four_times = seconds_of(with_engines(64, PublicationMode::Broadcast));
  EXPECT_NEAR(four_times - twice, 2 * (twice - once), 0.02 * four_times);
  EXPECT_NEAR(four_times, 2 * twice, 0.05 * four_times);
}

TEST(Publication, BroadcastLoadsTheSenderWithEveryCopy) {
  // 64 engines of 4 replicas of tp 2: 256 replicas, served by 4 copies of the trainer, 64 each. A
  // trainer's device sends the eighth of the weights that it holds 64 times over.
  const SimulationSettings s = with_engines(64, PublicationMode::Broadcast);
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  const double bytes = 2.0 * rollout_memory(s).device.weights;  // Both devices of a replica.
  const double port =
      bytes / 8 * 64 * fabric.levels[kSupernode].seconds_per_byte * fabric.p2p.slowdown;
  EXPECT_NEAR(seconds_of(s), port, 0.1 * port);
}

TEST(Publication, BothModesAreEqualForOneReplica) {
  SimulationSettings s = with_engines(1, PublicationMode::Relay);
  s.cards = s.rollout_cards = 1;
  const double relay = seconds_of(s);
  s.config.publication.mode = PublicationMode::Broadcast;
  EXPECT_DOUBLE_EQ(seconds_of(s), relay);
}

TEST(Publication, BroadcastAcrossSupernodesTakesLongerThanInsideOne) {
  // 64 engines of 16 cards on four supernodes, or (fewer) as many bytes inside the first.
  SimulationSettings apart = with_engines(64, PublicationMode::Broadcast);
  apart.cluster = *sim_hw::Catalog::shipped().hardware("cm384-x4").value();
  apart.cards = 16;
  apart.rollout_cards = 16 * 64;
  SimulationSettings together = apart;
  together.cards = 4;
  together.rollout_cards = 4 * 64;
  // Per replica served: the RDMA port of a device is narrower than its port of the supernode.
  EXPECT_GT(seconds_of(apart) / 4, 1.5 * seconds_of(together));
  apart.config.publication.mode = PublicationMode::Relay;
  EXPECT_LT(seconds_of(apart), seconds_of(together));
}

/// Bytes of a version that engines on `cards` shared cards of this hardware renew beside
/// generation.
sim_hw::LevelBytes renewed_on(std::string_view hardware, std::int64_t cards) {
  SimulationSettings s = testing::settings_of(hardware, "qwen3-32b");
  s.colocated = true;
  s.cards = 4;
  s.rollout_cards = s.trainer_cards = cards;
  return publish_beside(sim_hw::make_fabric(s.cluster), s).received;
}

TEST(Publication, BesideGenerationCrossesTheInnermostLevelThatJoinsTheSharedCards) {
  constexpr std::size_t kNode = 1, kRdma = 3;
  const auto only = [](const sim_hw::LevelBytes& bytes, std::size_t level) {
    return bytes.at[level] > 0 && bytes.at[level] == bytes.total();
  };
  // 8 cards to a node, 384 to a supernode.
  EXPECT_TRUE(only(renewed_on("cm384", 8), kNode));
  EXPECT_TRUE(only(renewed_on("cm384", 12), kSupernode));
  EXPECT_TRUE(only(renewed_on("cm384", 384), kSupernode));
  EXPECT_TRUE(only(renewed_on("cm384-x4", 384), kSupernode));
  EXPECT_TRUE(only(renewed_on("cm384-x4", 768), kRdma));
}

}  // namespace
}  // namespace temper::actors
