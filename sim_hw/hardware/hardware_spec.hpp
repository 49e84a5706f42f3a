// Describes a cluster: dies, cards, nodes, supernodes and the links between them. Read from
// configs/hardware/*.yaml, where each number names its source. A device is a die: a unit with its
// own memory and rank. An NVIDIA card has one die, an Ascend 910C card two. Values only; no
// threads.
#pragma once

#include "core/describe.hpp"
#include "sim_hw/hardware/constants.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace temper::sim_hw {

struct DieSpec {
  FlopsPerSecond bf16{};                 ///< Dense matrix peak.
  std::optional<FlopsPerSecond> fp16{};  ///< Where it differs from bf16.
  std::optional<FlopsPerSecond> low{};   ///< FP8 or INT8 matrix peak.
  bool fp8 = true;                       ///< Whether `low` also holds for FP8, not only INT8.
  FlopsPerSecond vector{};               ///< FP32 peak of elementwise kernels.
  std::int64_t cores = 0;                ///< SMs or cube cores.
  Bytes memory{};                        ///< HBM capacity.
  BytesPerSecond memory_bandwidth{};     ///< HBM peak.
  Bytes cache{};                         ///< Last-level cache.
};
void describe(auto& v, DieSpec& c) {
  v.field(1, "bf16", c.bf16, {.doc = "Dense BF16 matrix peak.", .min = FlopsPerSecond(1e9)});
  v.field(2, "fp16", c.fp16, {.doc = "FP16 matrix peak, where it differs from BF16."});
  v.field(3, "low", c.low, {.doc = "FP8 or INT8 matrix peak."});
  v.field(
      4, "vector", c.vector, {.doc = "FP32 peak of the vector units.", .min = FlopsPerSecond(1e9)});
  v.field(
      5, "cores", c.cores, {.doc = "SMs or cube cores; the unit of wave quantization.", .min = 1});
  v.field(6, "memory", c.memory, {.doc = "HBM capacity.", .min = Bytes(1)});
  v.field(
      7, "memory_bandwidth", c.memory_bandwidth, {.doc = "HBM peak.", .min = BytesPerSecond(1e6)});
  v.field(8, "cache", c.cache, {.doc = "Last-level cache.", .min = Bytes(0)});
  v.field(10, "fp8", c.fp8, {.doc = "Whether the low peak also holds for FP8, not only INT8."});
}

/// Host memory and the link between a device and its host. Bandwidths are per device and direction.
struct HostSpec {
  Bytes memory{};  ///< Per node.
  BytesPerSecond to_device{};
  BytesPerSecond from_device{};
  Duration latency{};  ///< Fixed cost of one copy.
  /// Access to the memory of another node's host, where devices reach it directly.
  std::optional<BytesPerSecond> remote_to_device{};
  std::optional<BytesPerSecond> remote_from_device{};
  /// Between the hosts and the devices of a node, per direction; empty: each device has its link.
  std::optional<BytesPerSecond> node_bandwidth{};
};
void describe(auto& v, HostSpec& c) {
  v.field(1, "memory", c.memory, {.doc = "Host DRAM of a node.", .min = Bytes(0)});
  v.field(2,
          "to_device",
          c.to_device,
          {.doc = "Bandwidth from host to device, per device, with pinned memory."});
  v.field(3,
          "from_device",
          c.from_device,
          {.doc = "Bandwidth from device to host, per device, with pinned memory."});
  v.field(4, "latency", c.latency, {.doc = "Fixed cost of one copy."});
  v.field(
      5,
      "remote_to_device",
      c.remote_to_device,
      {.doc = "Bandwidth from the memory of another node's host, if devices access it directly."});
  v.field(
      6,
      "remote_from_device",
      c.remote_from_device,
      {.doc = "Bandwidth to the memory of another node's host, if devices access it directly."});
  v.field(7,
          "node_bandwidth",
          c.node_bandwidth,
          {.doc = "Bandwidth between the hosts and all devices of a node, per direction, where it "
                  "is less than that of their links together."});
}
/// The host as each device of a node sees it while all of them copy.
inline HostSpec shared_host(HostSpec host, std::int64_t devices_of_node) {
  if (host.node_bandwidth) {
    const double share = host.node_bandwidth->count() / static_cast<double>(devices_of_node);
    host.to_device = BytesPerSecond(std::min(host.to_device.count(), share));
    host.from_device = BytesPerSecond(std::min(host.from_device.count(), share));
  }
  return host;
}

/// One level of the interconnect, innermost first: package, node, supernode, RDMA.
struct LinkLevel {
  std::string name;
  std::int64_t devices = 0;     ///< Devices that one unit of this level joins; 0: all.
  BytesPerSecond bandwidth{};   ///< Injection of one device into this level, per direction.
  Duration latency{};           ///< One way, empty message, across this level.
  double oversubscription = 1;  ///< For the uplinks to this level.
  bool shared_port = false;     ///< Devices reach this level through their port of the level below.
};
void describe(auto& v, LinkLevel& c) {
  v.field(1, "name", c.name, {.doc = "package, node, supernode or rdma."});
  v.field(2, "devices", c.devices, {.doc = "Devices per unit of this level; 0: all.", .min = 0});
  v.field(3, "bandwidth", c.bandwidth, {.doc = "Bandwidth per device and direction."});
  v.field(4, "latency", c.latency, {.doc = "Latency of an empty message, one way."});
  v.field(5,
          "oversubscription",
          c.oversubscription,
          {.doc = "Oversubscription of the uplinks to this level.", .min = 1.0});
  v.field(
      6, "shared_port", c.shared_port, {.doc = "Whether devices use the port of the level below."});
}

struct HardwareSpec {
  std::string name;
  std::string source;  ///< Source of the numbers.
  std::int64_t dies_per_card = 1;
  std::int64_t cards_per_node = 8;
  std::int64_t nodes = 1;       ///< Per supernode; in all if there is only one.
  std::int64_t supernodes = 1;  ///< Joined by the last level.
  DieSpec die;
  HostSpec host;
  std::vector<LinkLevel> levels;
  HardwareConstants constants;       ///< Measured or fitted; in no data sheet.
  std::vector<FitRecord> fits;       ///< Sources of the constants.
  std::vector<std::string> aliases;  ///< Other names used in publications.

  std::int64_t devices_per_node() const { return dies_per_card * cards_per_node; }
  std::int64_t cards() const { return cards_per_node * nodes * supernodes; }
  std::int64_t devices() const { return cards() * dies_per_card; }
};
void describe(auto& v, HardwareSpec& c) {
  v.field(1, "name", c.name, {.doc = "Name on the command line."});
  v.field(2, "source", c.source, {.doc = "Source of the numbers."});
  v.field(3, "dies_per_card", c.dies_per_card, {.doc = "Devices (dies) per card.", .min = 1});
  v.field(4, "cards_per_node", c.cards_per_node, {.doc = "Cards per node.", .min = 1});
  v.field(5, "nodes", c.nodes, {.doc = "Nodes per supernode.", .min = 1});
  v.field(
      6, "supernodes", c.supernodes, {.doc = "Supernodes, joined by the last level.", .min = 1});
  v.field(7, "die", c.die, {.doc = "One device."});
  v.field(8, "host", c.host, {.doc = "Host memory and the links to devices."});
  v.field(9, "levels", c.levels, {.doc = "Interconnect, innermost level first."});
  v.field(10, "constants", c.constants, {.doc = "Measured or fitted constants."});
  v.field(11, "fits", c.fits, {.doc = "Sources of the fitted constants."});
  v.field(12, "aliases", c.aliases, {.doc = "Other names used in publications."});
}

}  // namespace temper::sim_hw
