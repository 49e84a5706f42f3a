#include "sim_hw/network/cluster_link.hpp"

#include "core/check.hpp"
#include "sim_hw/network/hosts.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace temper::sim_hw {
namespace {

constexpr double kMessageChunk =
    1 << 20;  ///< Bytes per piece of a message (docs/reference/protocol.md).

/// The lowest id at or above `devices` that shares no unit of an inner level with a lower id.
std::int64_t first_outside(const Fabric& fabric, std::int64_t devices) {
  std::int64_t first = devices;
  for (std::size_t l = 0; l + 1 < fabric.level_count; ++l) {
    const auto unit = static_cast<std::int64_t>(std::max(1.0, fabric.levels[l].devices));
    first = (first + unit - 1) / unit * unit;
  }
  return first;
}

/// The fabric with the link as one more level around its first `devices`.
Fabric with_link(Fabric fabric, const OutsidePort& port, std::int64_t devices) {
  TEMPER_CHECK(fabric.level_count > 0 && fabric.level_count < Fabric::kMaxLevels,
               "the fabric has room for one more level");
  fabric.levels[fabric.level_count - 1].devices = static_cast<double>(devices);
  fabric.levels[fabric.level_count] = {.devices = 2 * static_cast<double>(devices),
                                       .seconds_per_byte = port.seconds_per_byte,
                                       .latency = 0,
                                       .shared_port = port.outermost};
  ++fabric.level_count;
  return fabric;
}

}  // namespace

std::optional<BytesPerSecond> outermost_port(const HardwareSpec& hardware) {
  if (hardware.levels.empty() || hardware.levels.back().devices != 0)
    return std::nullopt;
  const LinkLevel& level = hardware.levels.back();
  return BytesPerSecond(level.bandwidth.count() / level.oversubscription);
}

CrossPublication publish_across(const ClusterLink& link,
                                const ClusterSide& sender,
                                const ClusterSide& receiver,
                                const WeightVolume& weights,
                                FanOut replicas,
                                double bucket_bytes) {
  ShardLayout from = sender.layout;
  ShardLayout to = receiver.layout;
  to.first_device = 0;
  from.first_device = first_outside(receiver.fabric, to.devices());
  const Fabric inside = with_link(receiver.fabric, receiver.port, from.first_device);
  CrossPublication out;
  out.link = inside.level_count - 1;
  out.traffic = reshard_traffic(inside, weights, from, to, replicas);
  const std::span<const ReshardTraffic::PerLevel> sent(out.traffic.sent);
  const auto ours = static_cast<std::size_t>(from.first_device);
  double sending = 0;
  for (const ReshardTraffic::PerLevel& device : sent.subspan(ours)) {
    out.crossing += device[out.link];
    sending = std::max(sending, device[out.link]);
  }
  const double transfer =
      std::max({busiest_port_seconds(inside, out.traffic.received),
                busiest_port_seconds(inside, sent.first(ours)),
                sending * sender.port.seconds_per_byte * sender.fabric.p2p.slowdown,
                out.crossing * link.seconds_per_byte});
  const double buckets =
      std::max(1.0, std::ceil(out.traffic.most_received() / bucket_bytes - 1e-9));
  out.seconds = transfer + buckets * (inside.p2p.start_up + link.latency);
  return out;
}

double payload_seconds(const ClusterLink& link, double bytes) {
  return bytes > 0 ? link.latency + wire_bytes(bytes, kMessageChunk) * link.seconds_per_byte : 0;
}

}  // namespace temper::sim_hw
