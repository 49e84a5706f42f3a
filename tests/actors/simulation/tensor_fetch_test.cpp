// Reading the tensors of a batch: bytes by plane, and time.
#include "actors/simulation/tensor_fetch.hpp"

#include "sim_hw/network/hosts.hpp"
#include "tests/support/simulated_drive.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

std::vector<CardId> cards(std::uint32_t first, std::uint32_t count) {
  std::vector<CardId> out;
  for (std::uint32_t i = 0; i < count; ++i)
    out.emplace_back(first + i);
  return out;
}

TensorFetch fetch(const SimulatedRun& run, const TensorPlaces& places, double bytes) {
  return fetch_tensors(sim_hw::make_fabric(run.cluster), run, places, bytes);
}

TEST(TensorFetch, CountsTokensAndResponses) {
  SimulatedRun run = testing::settings_of("cm384", "qwen2.5-7b");
  run.config.tensors = {.per_token = Bytes(100), .per_response = Bytes(7)};
  const PayloadTokens two{.responses = 2, .prompt = Tokens(10), .response = Tokens(30)};
  EXPECT_EQ(tensor_bytes(run, two), 4014);  // 40 x 100 + 2 x 7
  run.response_weight = 3;
  EXPECT_EQ(tensor_bytes(run, two), 3 * 4014);
}

TEST(TensorFetch, BetweenNodesOfASupernodeTakesThePortAndTheHostLink) {
  // 8 + 8 cards, two nodes of 16 dies. A die reads 1 GB: 1e9 / (0.85 x 196e9) = 6.0024 ms over its
  // port, 1e9 / 151e9 = 6.6225 ms from its host; 10 us and 5.5 us start-up, 9.6 us of the host.
  const SimulatedRun run = testing::settings_of("cm384", "qwen2.5-7b");
  const TensorFetch read = fetch(run, {cards(0, 8), cards(8, 8)}, 16e9);
  EXPECT_NEAR(read.seconds, 1e9 / (0.85 * 196e9) + 1e9 / 151e9 + 25.1e-6, 1e-9);
  EXPECT_DOUBLE_EQ(read.sent.at[2], 16e9) << "supernode";
  EXPECT_DOUBLE_EQ(read.sent.total(), 16e9);
}

TEST(TensorFetch, WhatIsOnTheSameNodeIsNotSent) {
  const SimulatedRun run = testing::settings_of("cm384", "qwen2.5-7b");
  const TensorFetch alone = fetch(run, {cards(0, 8), cards(0, 8)}, 16e9);
  EXPECT_EQ(alone.sent.total(), 0);
  EXPECT_NEAR(alone.seconds, 1e9 / 151e9 + 9.6e-6, 1e-9);
  // All 16 cards of two nodes: half of the bytes are on the other node.
  const TensorFetch shared = fetch(run, {cards(0, 16), cards(0, 16)}, 16e9);
  EXPECT_DOUBLE_EQ(shared.sent.total(), 8e9);
}

TEST(TensorFetch, BetweenSupernodesTakesRdma) {
  // Engines on the last node of one supernode and the first of the next, the trainer beside them:
  // half of the bytes come from the other supernode, over 24.5 GB/s ports; a die reads 1 GB.
  const SimulatedRun run = testing::settings_of("cm384-x4", "qwen2.5-7b");
  const TensorFetch read = fetch(run, {cards(376, 16), cards(392, 8)}, 16e9);
  EXPECT_DOUBLE_EQ(read.sent.at[2], 8e9);
  EXPECT_DOUBLE_EQ(read.sent.at[3], 8e9);
  EXPECT_NEAR(read.seconds, 0.5e9 / (0.85 * 24.5e9) + 1e9 / 151e9 + 21.1e-6, 1e-9);
}

TEST(TensorFetch, TheBusiestSenderIsAlsoALimit) {
  // One engine card sends what eight trainer cards read.
  const SimulatedRun run = testing::settings_of("cm384", "qwen2.5-7b");
  const TensorFetch read = fetch(run, {cards(0, 1), cards(8, 8)}, 16e9);
  EXPECT_NEAR(read.seconds, 8e9 / (0.85 * 196e9) + 1e9 / 151e9 + 25.1e-6, 1e-9);
}

TEST(TensorFetch, FromAnotherClusterTakesTheLinkBetweenThem) {
  SimulatedRun run = testing::settings_of("cm384", "qwen2.5-7b");
  run.config.clusters = {{"nvidia-h800", 8, {}}, {"cm384", 8, {}}};
  run.config.between = {BytesPerSecond(1e9), std::chrono::milliseconds(3)};
  const RoleCluster here{1, run.cluster, BytesPerSecond(24.5e9)};
  const RoleCluster there{
      0, *sim_hw::Catalog::shipped().hardware("nvidia-h800").value(), BytesPerSecond(50e9)};
  run.clusters = RoleClusters{here, there, here};
  const TensorFetch read = fetch(run, {cards(0, 8), cards(8, 8)}, 16e9);
  EXPECT_NEAR(
      read.seconds, 3e-3 + sim_hw::wire_bytes(16e9, 1 << 20) / 1e9 + 1e9 / 151e9 + 9.6e-6, 1e-6);
  EXPECT_DOUBLE_EQ(read.sent.at[run.cluster.levels.size()], 16e9);
  EXPECT_DOUBLE_EQ(read.sent.total(), 16e9);
}

TEST(TensorFetch, AStoreThatReachesATenthOfTheLinksTakesTenTimesAsLong) {
  SimulatedRun run = testing::settings_of("cm384", "qwen2.5-7b");
  const TensorPlaces places{cards(0, 8), cards(8, 8)};
  const double whole = fetch(run, places, 16e9).seconds - 25.1e-6;
  run.config.tensors.link_share = 0.1;
  EXPECT_NEAR(fetch(run, places, 16e9).seconds, 10 * whole + 25.1e-6, 1e-9);
}

}  // namespace
}  // namespace temper::actors
