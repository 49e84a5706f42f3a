#include "sim_hw/network/hosts.hpp"

#include "sim_hw/network/reshard.hpp"

#include <algorithm>
#include <cmath>

namespace temper::sim_hw {
namespace {

constexpr double kOfChunk = 45 + 2 * 33 + 9 + 2;
constexpr double kFrame = 1514;
constexpr double kPayload = 1500 - 20 - 20 - 12;

}  // namespace

double wire_bytes(double bytes, double chunk) {
  const double chunks = std::max(1.0, std::ceil(bytes / chunk - 1e-9));
  return (bytes + chunks * kOfChunk) * kFrame / kPayload;
}

double host_publication_seconds(const HostPublication& p) {
  Fabric fabric;
  fabric.level_count = fabric.node_levels = 1;
  fabric.levels[0] = {.devices = static_cast<double>(p.hosts + 1),
                      .seconds_per_byte = 1 / p.bandwidth};
  const WeightVolume image{.layers = {wire_bytes(p.bytes, p.chunk)}, .experts = {0}};
  const ShardLayout to{.dp = p.hosts};
  const ShardLayout from{.first_device = p.hosts};
  const ReshardTraffic traffic = reshard_traffic(fabric, image, from, to, p.how);
  const double one = wire_bytes(std::min(p.bytes, p.chunk), p.chunk);
  const double filling =
      p.how == FanOut::Tree ? static_cast<double>(p.hosts - 1) * one / p.bandwidth : 0;
  return reshard_seconds(fabric, traffic, {.bucket_bytes = wire_bytes(p.chunk, p.chunk)}) + filling;
}

}  // namespace temper::sim_hw
