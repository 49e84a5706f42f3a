// Fluid flows over shared links: the time of many competing transfers.
//
// Assumptions. A flow waits for the sum of the latencies of its route, then moves as a fluid at the
// max-min fair rate: no rate can grow without reducing that of a flow that is not faster. No
// packets, windows or protocol overhead (SimGrid's CM02 with factors of 1).
//
// Equation. Progressive filling: the link with the least capacity left per flow fixes the rate of
// its flows and is removed; repeat. Rates change only when a flow starts or ends.
//
// Symmetry. Flows that no relabeling can distinguish (equal bytes and start, over links that carry
// the same kinds of flows) have equal rates throughout. Color refinement of the graph of flows and
// links finds these classes first (64-bit hashes as colors), and one flow of each class is
// simulated. The result is exact, and makes an all-to-all of hundreds of devices cheap. Without any
// symmetry each flow is a class, and an event costs links x flows in the worst case.
//
// Deterministic; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace temper::sim_hw {

using LinkId = std::uint32_t;

class FluidNetwork {
 public:
  /// `bandwidth`: bytes per second in one direction; `latency`: seconds. Requires: bandwidth > 0,
  /// latency >= 0.
  LinkId add_link(double bandwidth, double latency = 0);

  std::size_t links() const { return bandwidth_.size(); }
  double bandwidth(LinkId link) const { return bandwidth_[link]; }
  double latency(LinkId link) const { return latency_[link]; }

 private:
  std::vector<double> bandwidth_;
  std::vector<double> latency_;
};

class FlowSet {
 public:
  void reserve(std::size_t flows, std::size_t links_per_flow);
  /// `start`: seconds, before the latency of the route. Requires: bytes >= 0, weight > 0.
  void add(std::span<const LinkId> route, double bytes, double start = 0, double weight = 1);

  std::size_t size() const { return bytes_.size(); }
  std::span<const LinkId> route(std::size_t flow) const {
    return {links_.data() + offsets_[flow], offsets_[flow + 1] - offsets_[flow]};
  }
  double bytes(std::size_t flow) const { return bytes_[flow]; }
  double start(std::size_t flow) const { return start_[flow]; }
  double weight(std::size_t flow) const { return weight_[flow]; }

 private:
  std::vector<std::uint32_t> offsets_{0};
  std::vector<LinkId> links_;
  std::vector<double> bytes_;
  std::vector<double> start_;
  std::vector<double> weight_;
};

struct FluidResult {
  double end = 0;            ///< Seconds; end of the last flow.
  std::vector<double> ends;  ///< Per flow.
  std::size_t classes = 0;   ///< Number of distinct flow classes.
  std::size_t events = 0;    ///< Number of rate computations.
};

FluidResult simulate(const FluidNetwork& network, const FlowSet& flows);

/// Bytes per second of all flows when all are active; infinite for a route without links.
std::vector<double> fair_rates(const FluidNetwork& network, const FlowSet& flows);

}  // namespace temper::sim_hw
