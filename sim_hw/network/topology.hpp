// The links of a machine for the fluid model: links that flows between its devices share.
//
// Assumptions. Devices 0, 1, 2, ... fill the innermost level first. A device has one port per
// direction for each level, or shares the port of the level below. The switches of a level do not
// block, except for the uplinks into an oversubscribed level: those of one unit of the level below
// are one link of (devices of the unit) x bandwidth / oversubscription. A flow uses the innermost
// level that joins its ends, and waits for that level's latency once. Efficiencies are not applied.
// Not thread-safe.
#pragma once

#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/network/fluid.hpp"

namespace temper::sim_hw {

/// How flows with different latencies share a link: equally, or in inverse proportion to latency,
/// like SimGrid's CM02 and TCP with long windows.
enum class Sharing { Equal, ByLatency };

class Topology {
 public:
  /// Builds the first `devices` devices. Requires: at least one level; each level has a bandwidth.
  Topology(const std::vector<LinkLevel>& levels,
           std::int64_t devices,
           Sharing sharing = Sharing::Equal);

  const FluidNetwork& network() const { return network_; }
  std::int64_t devices() const { return devices_; }

  /// Adds a flow between two devices, unless they are the same.
  void add(FlowSet& flows, std::int64_t from, std::int64_t to, double bytes, double start = 0);

 private:
  struct Level {
    std::int64_t devices = 1;     ///< Per unit.
    std::int64_t unit_below = 1;  ///< Devices per unit of the level below.
    double latency = 0;
    LinkId ports = 0;            ///< Outgoing port of device 0, then incoming, then device 1.
    std::size_t port_level = 0;  ///< Innermost level with these ports.
    bool has_uplinks = false;
    LinkId uplinks = 0;  ///< Outgoing uplink of unit 0, then incoming, then unit 1.
  };
  FluidNetwork network_;
  std::vector<Level> levels_;
  std::int64_t devices_;
  Sharing sharing_;
  std::vector<LinkId> route_;  ///< Route of the flow being added.
};

}  // namespace temper::sim_hw
