// Traffic over a link between two clusters, and its time.
#include "sim_hw/network/cluster_link.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::sim_hw {
namespace {

constexpr double kGB = 1e9;

/// Nodes of 8 devices at 400 GB/s, joined at 50 GB/s; full efficiency, no start-up times.
Fabric nodes_of_8() {
  HardwareSpec spec;
  spec.cards_per_node = 8;
  spec.levels.push_back({"node", 8, BytesPerSecond(400 * kGB), Duration(0), 1, false});
  spec.levels.push_back({"rdma", 0, BytesPerSecond(50 * kGB), Duration(0), 1, false});
  return make_fabric(spec);
}

/// One layer of 80 GB without experts, from 4 devices (tp 4, 25 GB/s each) to 4 replicas of tp 8 on
/// 32 devices.
CrossPublication publish(const ClusterLink& link,
                         FanOut how,
                         const OutsidePort& receivers = {1 / (50 * kGB), true}) {
  static const Fabric fabric = nodes_of_8();
  return publish_across(link,
                        {fabric, {1 / (25 * kGB), false}, {.tp = 4}},
                        {fabric, receivers, {.tp = 8, .dp = 4}},
                        {{80 * kGB}, {0}, 0, 0},
                        how,
                        kGB);
}

TEST(ClusterLink, RelayedWeightsCrossItOnce) {
  // 80 GB over 20 GB/s: 4 s, longer than 20 GB of a sender over 25 GB/s (0.8 s) and 10 GB of a
  // receiver over 50 GB/s (0.2 s). 10 GB of a receiver are 10 buckets, each a millisecond late.
  const CrossPublication p = publish({1 / (20 * kGB), 1e-3}, FanOut::Tree);
  EXPECT_DOUBLE_EQ(p.crossing, 80 * kGB);
  EXPECT_NEAR(p.seconds, 4 + 10 * 1e-3, 1e-9);
  // Every replica receives its 80 GB: one over the link, three from the replica before it.
  EXPECT_DOUBLE_EQ(p.traffic.moved, 4 * 80 * kGB);
  EXPECT_DOUBLE_EQ(p.traffic.most_received(), 10 * kGB);
}

TEST(ClusterLink, BroadcastWeightsCrossItForEveryReplica) {
  // 4 x 80 GB over 20 GB/s.
  const CrossPublication p = publish({1 / (20 * kGB), 0}, FanOut::Direct);
  EXPECT_DOUBLE_EQ(p.crossing, 320 * kGB);
  EXPECT_NEAR(p.seconds, 16, 1e-9);
}

TEST(ClusterLink, PortsLimitAWideLink) {
  // 80 GB over 1000 GB/s: 0.08 s. A sender has a quarter of them for 25 GB/s.
  EXPECT_NEAR(publish({1 / (1000 * kGB), 0}, FanOut::Tree).seconds, 0.8, 1e-9);
  // Receivers of 5 GB/s each take 10 GB: 2 s.
  EXPECT_NEAR(
      publish({1 / (1000 * kGB), 0}, FanOut::Tree, {1 / (5 * kGB), false}).seconds, 2, 1e-9);
}

TEST(ClusterLink, TheOutermostPortCarriesInnerAndOuterTraffic) {
  // 16 devices of a node each: the rest in 16 parts (tp 16), experts in two (ep 2), which makes 8
  // replicas of these. Devices 0 and 1 have 1 GB and 50 GB over the link, at 100 GB/s: 0.51 s. All
  // others have 1 GB over the link and 50 GB, at 50 GB/s, from the device two places before them.
  HardwareSpec spec;
  spec.cards_per_node = 1;
  spec.levels.push_back({"rdma", 0, BytesPerSecond(50 * kGB), Duration(0), 1, false});
  const Fabric fabric = make_fabric(spec);
  const auto seconds = [&](bool outermost) {
    return publish_across({1 / (1e6 * kGB), 0},
                          {fabric, {1 / (1e6 * kGB), false}, {.tp = 1}},
                          {fabric, {1 / (100 * kGB), outermost}, {.tp = 16, .ep = 2}},
                          {{16 * kGB}, {100 * kGB}, 0, 0},
                          FanOut::Tree,
                          1000 * kGB)
        .seconds;
  };
  EXPECT_NEAR(seconds(true), 1.0 / 100 + 50.0 / 50, 1e-9);
  EXPECT_NEAR(seconds(false), 50.0 / 50, 1e-9);
}

TEST(ClusterLink, ReceiversInAHalfFilledNodeShareNoNodeWithSenders) {
  // 4 receivers fill half of a node of 8; the senders would be the other half.
  const Fabric fabric = nodes_of_8();
  const CrossPublication p = publish_across({1 / (20 * kGB), 0},
                                            {fabric, {1 / (25 * kGB), false}, {.tp = 4}},
                                            {fabric, {1 / (50 * kGB), true}, {.tp = 4}},
                                            {{80 * kGB}, {0}, 0, 0},
                                            FanOut::Tree,
                                            kGB);
  EXPECT_DOUBLE_EQ(p.crossing, 80 * kGB);
  EXPECT_DOUBLE_EQ(p.traffic.received[0][p.link], 20 * kGB);
}

TEST(ClusterLink, PayloadsAreTcpOnAnEthernet) {
  // 1 GB in 954 pieces of 1 MiB, each with 122 bytes besides; 1448 of 1514 bytes of a frame are
  // payload; 12.5 GB/s (100 Gb/s); and once 5 ms.
  const double wire = (1e9 + 954 * 122.0) * 1514 / 1448;
  EXPECT_NEAR(payload_seconds({1 / 12.5e9, 5e-3}, 1e9), 5e-3 + wire / 12.5e9, 1e-9);
  EXPECT_EQ(payload_seconds({1 / 12.5e9, 5e-3}, 0), 0);
}

}  // namespace
}  // namespace temper::sim_hw
