#include "sim_hw/network/topology.hpp"

#include "core/check.hpp"

#include <algorithm>

namespace temper::sim_hw {

Topology::Topology(const std::vector<LinkLevel>& levels, std::int64_t devices, Sharing sharing)
    : devices_(devices), sharing_(sharing) {
  TEMPER_CHECK(!levels.empty() && devices > 0, "a topology needs levels and devices");
  std::int64_t below = 1;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const LinkLevel& spec = levels[l];
    Level level;
    const bool last = l + 1 == levels.size();
    level.devices = last || spec.devices <= 0 ? std::max(devices, below) : spec.devices;
    level.unit_below = below;
    level.latency = seconds(spec.latency);
    if (spec.shared_port && l > 0) {
      level.ports = levels_.back().ports;
      level.port_level = levels_.back().port_level;
    } else {
      level.port_level = l;
      level.ports = static_cast<LinkId>(network_.links());
      for (std::int64_t d = 0; d < 2 * devices; ++d)
        network_.add_link(spec.bandwidth.count());
    }
    if (spec.oversubscription > 1 && l > 0) {
      level.has_uplinks = true;
      level.uplinks = static_cast<LinkId>(network_.links());
      const double bandwidth =
          spec.bandwidth.count() * static_cast<double>(below) / spec.oversubscription;
      for (std::int64_t unit = 0; unit < 2 * ((devices + below - 1) / below); ++unit)
        network_.add_link(bandwidth);
    }
    levels_.push_back(level);
    below = level.devices;
  }
}

void Topology::add(FlowSet& flows, std::int64_t from, std::int64_t to, double bytes, double start) {
  TEMPER_CHECK(from >= 0 && from < devices_ && to >= 0 && to < devices_, "both devices exist");
  if (from == to)
    return;
  std::size_t top = 0;
  while (top + 1 < levels_.size() && from / levels_[top].devices != to / levels_[top].devices)
    ++top;
  const auto link = [](LinkId first, std::int64_t index, LinkId direction) {
    return static_cast<LinkId>(first + 2 * static_cast<LinkId>(index) + direction);
  };
  constexpr LinkId kOut = 0;
  constexpr LinkId kIn = 1;
  const Level& joint = levels_[top];
  route_.assign({link(joint.ports, from, kOut), link(joint.ports, to, kIn)});
  for (std::size_t l = joint.port_level; l <= top; ++l) {
    const Level& level = levels_[l];
    if (level.has_uplinks) {
      route_.push_back(link(level.uplinks, from / level.unit_below, kOut));
      route_.push_back(link(level.uplinks, to / level.unit_below, kIn));
    }
  }
  const bool by_latency = sharing_ == Sharing::ByLatency && joint.latency > 0;
  flows.add(route_, bytes, start + joint.latency, by_latency ? 1 / joint.latency : 1);
}

}  // namespace temper::sim_hw
