#include "sim_hw/network/reshard.hpp"

#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/network/hosts.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace temper::sim_hw {
namespace {

/// 4 layers of 80 bytes and 160 bytes of experts, embedding and head of 8.
WeightVolume small_model() {
  return {{80, 80, 80, 80}, {160, 160, 160, 160}, 8, 8};
}

Fabric one_switch() {
  HardwareSpec spec;
  spec.levels.push_back({"switch", 0, BytesPerSecond(100), Duration(0), 1, false});
  return make_fabric(spec);
}

double total(const std::vector<ReshardTraffic::PerLevel>& devices) {
  double sum = 0;
  for (const auto& bytes : devices)
    sum += std::accumulate(bytes.begin(), bytes.end(), 0.0);
  return sum;
}

TEST(Reshard, MovesNothingBetweenEqualLayoutsInTheSamePlace) {
  const ShardLayout layout{2, 2, 4, 8, 0};
  const ReshardTraffic traffic = reshard_traffic(one_switch(), small_model(), layout, layout);
  EXPECT_EQ(traffic.moved, 0);
  // 4 replicas of 4 x 80 + 16, one of the experts.
  EXPECT_DOUBLE_EQ(traffic.local, 4 * (320 + 16) + 640);
  EXPECT_EQ(reshard_seconds(one_switch(), traffic, {}), 0);
}

TEST(Reshard, NewDevicesReceiveTheirWholeShard) {
  ShardLayout to{4, 1, 2, 8, 8};
  const ReshardTraffic traffic =
      reshard_traffic(one_switch(), small_model(), {2, 2, 2, 4, 0}, to, FanOut::Direct);
  EXPECT_EQ(traffic.local, 0);
  for (std::size_t d = 8; d < 16; ++d) {
    // 336 / 4 of the rest, 640 / 8 of the experts.
    EXPECT_NEAR(traffic.received[d][0], 84 + 80, 1e-9) << d;
    EXPECT_EQ(traffic.sent[d][0], 0) << d;
  }
  EXPECT_NEAR(traffic.moved, 8 * 164.0, 1e-9);
}

TEST(Reshard, ConservesBytesWhateverTheLayouts) {
  for (const std::int64_t tp : {1, 2, 3, 8}) {
    for (const std::int64_t pp : {1, 2, 3, 4}) {
      for (const FanOut replicas : {FanOut::Tree, FanOut::Direct}) {
        for (const std::int64_t first : {0, 3, 100}) {
          const ShardLayout from{4, 2, 2, 8, 0};
          const ShardLayout to{tp, pp, 2, 2 * tp, first};
          const ReshardTraffic traffic =
              reshard_traffic(one_switch(), small_model(), from, to, replicas);
          EXPECT_NEAR(total(traffic.sent), traffic.moved, 1e-6);
          EXPECT_NEAR(total(traffic.received), traffic.moved, 1e-6);
          EXPECT_NEAR(traffic.moved + traffic.local, 2 * 336 + 640, 1e-6);
        }
      }
    }
  }
}

TEST(Reshard, HalvingTensorParallelismKeepsTheLocalHalf) {
  // Devices 0, 1 hold halves; both then need all: each receives the other's.
  const ReshardTraffic traffic = reshard_traffic(
      one_switch(), {{100}, {0}, 0, 0}, {2, 1, 1, 1, 0}, {1, 1, 2, 1, 0}, FanOut::Direct);
  EXPECT_DOUBLE_EQ(traffic.moved, 100);
  EXPECT_DOUBLE_EQ(traffic.local, 100);
  // 50 bytes through a port of 100 B/s.
  EXPECT_DOUBLE_EQ(reshard_seconds(one_switch(), traffic, {}), 0.5);
}

TEST(Reshard, ForwardingReplicasRelieveTheSource) {
  const ShardLayout from{1, 1, 1, 1, 0};
  const ShardLayout to{1, 1, 8, 1, 1};
  const auto most_sent = [&](FanOut replicas) {
    return reshard_traffic(one_switch(), small_model(), from, to, replicas).most_sent();
  };
  EXPECT_NEAR(most_sent(FanOut::Direct), 8 * most_sent(FanOut::Tree), 1e-9);
}

TEST(Reshard, BucketsOverlapTheCopiesThroughTheHost) {
  Fabric fabric = one_switch();
  fabric.to_device = 1.0 / 50;
  fabric.from_device = 1.0 / 50;
  ReshardTraffic traffic;
  traffic.sent = {{100}, {0}};
  traffic.received = {{0}, {100}};
  traffic.moved = 100;
  // Out 2 s, over 1 s, in 2 s; in ten buckets 5 / 10 + 0.9 x 2, and ten latencies.
  EXPECT_DOUBLE_EQ(reshard_seconds(fabric, traffic, {0, 0, Staging::ThroughHost}), 5);
  EXPECT_DOUBLE_EQ(reshard_seconds(fabric, traffic, {10, 0.1, Staging::ThroughHost}),
                   0.5 + 1.8 + 1);
}

TEST(Reshard, TheVolumeOfAModelIsItsParameters) {
  Catalog catalog(std::string(TEMPER_SOURCE_DIR) + "/configs");
  const Result<const ModelSpec*> model = catalog.model("qwen3-30b-a3b");
  ASSERT_TRUE(model.has_value());
  const WeightVolume volume = weight_volume(**model, 2);
  double bytes = volume.first + volume.last;
  for (std::size_t l = 0; l < volume.layers.size(); ++l)
    bytes += volume.layers[l] + volume.experts[l];
  EXPECT_NEAR(bytes, 2 * 30.53e9, 2 * 0.01e9);
}

/// 16 MiB in chunks of 1 MiB over links of 5 MB/s.
HostPublication to_hosts(std::int64_t hosts, FanOut how) {
  return {.bytes = 16 << 20, .hosts = hosts, .bandwidth = 5e6, .how = how};
}

TEST(HostPublication, AChunkOnTheWireIncludesAllHeaders) {
  // (1048576 + 45 + 2 x 33 + 9 + 2) x 1514 / 1448 = 1096497.7
  EXPECT_NEAR(wire_bytes(1 << 20, 1 << 20), 1096497.7, 0.1);
  EXPECT_NEAR(wire_bytes(16 << 20, 1 << 20), 16 * wire_bytes(1 << 20, 1 << 20), 1e-6);
}

TEST(HostPublication, ABroadcastSendsEveryCopyOverOneLink) {
  // 16 x 1096497.7 B / 5 MB/s = 3.5088 s for each host.
  EXPECT_NEAR(host_publication_seconds(to_hosts(1, FanOut::Direct)), 3.5088, 1e-4);
  EXPECT_NEAR(host_publication_seconds(to_hosts(8, FanOut::Direct)), 8 * 3.5088, 1e-3);
}

TEST(HostPublication, ARelayTakesOneCopyAndAChunkForEachFurtherHost) {
  // 1096497.7 B / 5 MB/s = 0.2193 s for a chunk.
  EXPECT_NEAR(host_publication_seconds(to_hosts(1, FanOut::Tree)), 3.5088, 1e-4);
  EXPECT_NEAR(host_publication_seconds(to_hosts(8, FanOut::Tree)), 3.5088 + 7 * 0.2193, 1e-3);
}

}  // namespace
}  // namespace temper::sim_hw
