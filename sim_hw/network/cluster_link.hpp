// Traffic between two clusters of different devices over one shared link: the weights of a model,
// from the trainer's layout to the engines' layout, and payloads.
//
// Assumptions. Each device has one full-duplex port to other clusters: that of its outermost level,
// or a separate one. The link carries its bandwidth in each direction; nothing else uses it.
// Weights move between devices as inside a cluster (reshard.hpp): with FanOut::Tree the first
// engine replica receives from the other cluster and every other one from the replica before it;
// with FanOut::Direct every replica receives over the link. Payloads are TCP messages (hosts.hpp)
// in chunks of 1 MiB, from hosts whose links together are at least as wide as the shared one.
//
// Equation. Weights in n buckets of b bytes (of the busiest receiver):
//   transfer = max over   each receiver's ports     bytes / (its p2p efficiency x bandwidth)
//                         each sender's ports       the same, in its own cluster
//                         the link                  all bytes that cross / its bandwidth
//   t = transfer + n (p2p start-up of the receivers + latency of the link)
//   payloads: t = latency + wire_bytes(bytes) / bandwidth of the link
// Constants: those of both clusters' hardware; the user gives the link's numbers.
// Range: a link without other traffic, without losses, and with windows of at least bandwidth x
// latency.
#pragma once

#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/network/reshard.hpp"

#include <optional>

namespace temper::sim_hw {

/// The port of one device to other clusters.
struct OutsidePort {
  double seconds_per_byte = 0;
  bool outermost = true;  ///< It is the port of the outermost level, shared with traffic inside.
};
/// The default port: that of the outermost level, if this level joins all devices; otherwise none.
std::optional<BytesPerSecond> outermost_port(const HardwareSpec& hardware);

/// One of the two clusters.
struct ClusterSide {
  const Fabric& fabric;
  OutsidePort port;
  ShardLayout layout;  ///< Layout that it trains or serves; first_device is ignored.
};
/// The link between two clusters, per direction.
struct ClusterLink {
  double seconds_per_byte = 0;
  double latency = 0;
};

struct CrossPublication {
  ReshardTraffic
      traffic;  ///< By device, receivers first; by level of the receivers' fabric, the link last.
  std::size_t link = 0;  ///< Index of the link's level.
  double crossing = 0;   ///< Bytes over the link.
  double seconds = 0;
};
/// Publishes from the sender's layout to the receiver's. Requires: the preconditions of
/// reshard_traffic(); fewer than Fabric::kMaxLevels levels on the receiving side.
CrossPublication publish_across(const ClusterLink& link,
                                const ClusterSide& sender,
                                const ClusterSide& receiver,
                                const WeightVolume& weights,
                                FanOut replicas,
                                double bucket_bytes);

/// Seconds for `bytes` of messages from hosts of one cluster to hosts of the other.
double payload_seconds(const ClusterLink& link, double bytes);

}  // namespace temper::sim_hw
