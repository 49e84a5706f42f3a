// What crosses from one cluster to another of other devices, over a link that all of it shares: the
// weights of a model, from the trainer's layout to that of the engines, and payloads.
//
// Assumptions. Each device has one port towards other clusters, each way for itself: that of its
// outermost level, or one of its own. The link carries its bandwidth each way, whatever crosses;
// only what is counted here is on it. Weights go from device to device as inside a cluster
// (reshard.hpp): with FanOut::Tree the first replica of the engines receives from the other
// cluster, every other from the replica before it, inside; with FanOut::Direct every replica
// receives over the link. Payloads are messages over TCP (hosts.hpp) in chunks of 1 MiB, from hosts
// whose own links are together no narrower.
//
// Equation. Weights, in n buckets of b bytes (of the busiest receiver):
//   transfer = max over   each receiver's ports     bytes / (its p2p efficiency x bandwidth)
//                         each sender's ports       the same, of its own cluster
//                         the link                  all bytes that cross / its bandwidth
//   t = transfer + n (p2p start-up of the receivers + latency of the link)
//   payloads: t = latency + wire_bytes(bytes) / bandwidth of the link
// Constants: those of either cluster's hardware; the link's own numbers are the user's.
// Range: a link that only this run uses; no loss, no windows smaller than bandwidth x latency.
#pragma once

#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/network/reshard.hpp"

#include <optional>

namespace temper::sim_hw {

/// Towards other clusters, of one device.
struct OutsidePort {
  double seconds_per_byte = 0;
  bool outermost = true;  ///< The port of its outermost level, which what is inside shares.
};
/// Of the hardware where nothing else is said: its outermost level, if that joins all there is;
/// else none leads outside.
std::optional<BytesPerSecond> outermost_port(const HardwareSpec& hardware);

/// One of the clusters.
struct ClusterSide {
  const Fabric& fabric;
  OutsidePort port;
  ShardLayout layout;  ///< Of what it trains or serves; its first_device is of no account.
};
/// Between two clusters, per direction.
struct ClusterLink {
  double seconds_per_byte = 0;
  double latency = 0;
};

struct CrossPublication {
  ReshardTraffic traffic;  ///< By device: receivers first; by level of their fabric, the link last.
  std::size_t link = 0;    ///< The level that is the link.
  double crossing = 0;     ///< Bytes over the link.
  double seconds = 0;
};
/// From the layout of the sender to that of the receiver. Requires: what reshard_traffic()
/// requires; fewer than Fabric::kMaxLevels levels on the receiving side.
CrossPublication publish_across(const ClusterLink& link,
                                const ClusterSide& sender,
                                const ClusterSide& receiver,
                                const WeightVolume& weights,
                                FanOut replicas,
                                double bucket_bytes);

/// Of `bytes` of messages from hosts of one cluster to hosts of the other.
double payload_seconds(const ClusterLink& link, double bytes);

}  // namespace temper::sim_hw
