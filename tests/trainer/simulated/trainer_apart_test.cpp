// A simulated trainer whose engines are in another cluster waits for the payloads of its batch.
#include "sim_hw/network/hosts.hpp"
#include "tests/trainer/simulated/waiting_trainer.hpp"

namespace temper::trainer {
namespace {

using actors::CardState;

/// On 8 cards of cm384, the engines on H800, over 1 MB/s.
actors::SimulationSettings apart() {
  actors::SimulationSettings s = actors::testing::settings_of("cm384", "qwen2.5-7b");
  s.config.trainer = {.tp = 2, .pp = 2, .micro_batch_tokens = 8192};
  s.config.clusters = {{"nvidia-h800", 8, {}}, {"cm384", 8, {}}};
  s.config.between = {BytesPerSecond(1e6), std::chrono::milliseconds(3)};
  const actors::RoleCluster here{1, s.cluster, BytesPerSecond(24.5e9)};
  const actors::RoleCluster there{
      0, *sim_hw::Catalog::shipped().hardware("nvidia-h800").value(), BytesPerSecond(50e9)};
  s.clusters = actors::RoleClusters{here, there, here};
  return s;
}

constexpr std::int64_t kBytes = std::int64_t{64} * (1024 * 8 + 1024 * 4 + 64);

class TrainerApart : public WaitingTrainer {
 protected:
  TrainerApart() : WaitingTrainer(apart()) {}
  std::int64_t crossed() {
    for (const actors::PlaneUse& plane : last_usage().planes) {
      if (plane.plane == "between clusters")
        return plane.bytes.count();
    }
    return -1;
  }
};

TEST_F(TrainerApart, AnUpdateWaitsForThePayloadsOfItsResponses) {
  // 64 responses of 1024 x 8 + 1024 x 4 + 64 bytes, 1.05 of them on the wire (TCP on an Ethernet),
  // over 1 MB/s, and 3 ms.
  const Duration received = from_seconds(3e-3 + sim_hw::wire_bytes(kBytes, 1 << 20) / 1e6);
  EXPECT_NEAR(seconds(received), 0.8297, 0.0001);
  ASSERT_TRUE(d_.send(batch()));
  const UpdateCost one = UpdateModel(apart())(std::vector<Tokens>(64, Tokens(2048)));
  EXPECT_EQ(*trainer_.next_event() - d_.now(), received + from_seconds(one.total()));
  ASSERT_TRUE(d_.run());
  const std::vector<actors::Span> spans = d_.spans();
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].state, CardState::WeightSync);
  EXPECT_EQ(spans[0].end - spans[0].begin, received);
  EXPECT_EQ(spans[1].state, CardState::Train);
  EXPECT_EQ(spans[1].end - spans[1].begin, from_seconds(one.total()));
  EXPECT_EQ(crossed(), kBytes);
}

TEST_F(TrainerApart, WhatIsPreparedCrossesOnce) {
  ASSERT_TRUE(d_.send(half_of_batch()));
  ASSERT_TRUE(d_.run());
  ASSERT_TRUE(d_.send(batch()));
  ASSERT_TRUE(d_.run());
  EXPECT_EQ(crossed(), kBytes);
}

TEST_F(TrainerApart, AStopWhileTheyArriveCountsNothingAsTrained) {
  ASSERT_TRUE(d_.send(batch()));
  ASSERT_TRUE(d_.run_until(d_.now() + std::chrono::milliseconds(100)));
  EXPECT_EQ(last_usage().flops.count(), 0);
  ASSERT_EQ(d_.spans().size(), 1U);
  EXPECT_EQ(d_.spans()[0].state, CardState::WeightSync);
  EXPECT_EQ(d_.spans()[0].end - d_.spans()[0].begin, Duration(std::chrono::milliseconds(100)));
}

}  // namespace
}  // namespace temper::trainer
