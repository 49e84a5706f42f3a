#include "sim_hw/network/scenarios.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace temper::sim_hw {
namespace {

constexpr BytesPerSecond kPort(392e9);
constexpr std::int64_t kNode = 8;
constexpr std::int64_t kBlock = 32;
constexpr std::int64_t kCopies = 5;  ///< Copies of each trainer's weights.

LinkLevel level(std::string name, std::int64_t devices, Duration latency) {
  LinkLevel out;
  out.name = std::move(name);
  out.devices = devices;
  out.bandwidth = kPort;
  out.latency = latency;
  return out;
}

Topology flat(std::int64_t devices) {
  return Topology({level("switch", 0, Duration(1900))}, devices);
}

Topology nodes_of_8(std::int64_t devices, double oversubscription) {
  LinkLevel upper = level("spine", 0, Duration(1900));
  upper.oversubscription = oversubscription;
  upper.shared_port = true;
  return Topology({level("node", kNode, Duration(1200)), upper}, devices, Sharing::ByLatency);
}

/// Device i sends to i + shift, for all devices.
double round_seconds(Topology& topology, std::int64_t shift, double bytes) {
  const std::int64_t n = topology.devices();
  FlowSet flows;
  flows.reserve(static_cast<std::size_t>(n), 2);
  for (std::int64_t i = 0; i < n; ++i)
    topology.add(flows, i, (i + shift) % n, bytes);
  return simulate(topology.network(), flows).end;
}

void add_all_to_all(
    Topology& topology, FlowSet& flows, std::int64_t first, std::int64_t n, double bytes) {
  for (std::int64_t i = first; i < first + n; ++i) {
    for (std::int64_t j = first; j < first + n; ++j)
      topology.add(flows, i, j, bytes);
  }
}

void add_blocks(Topology& topology, FlowSet& flows, std::int64_t first, double bytes) {
  for (std::int64_t b = first; b + kBlock <= topology.devices(); b += kBlock)
    add_all_to_all(topology, flows, b, kBlock, bytes / kBlock);
}

void add_weights(Topology& topology, FlowSet& flows, double bytes) {
  const std::int64_t trainers = topology.devices() / (kCopies + 1);
  for (std::int64_t t = 0; t < trainers; ++t) {
    for (std::int64_t k = 1; k <= kCopies; ++k)
      topology.add(flows, t, trainers * k + t, bytes);
  }
}

/// Fisher-Yates on the raw output of a generator with seed 7, like the reference.
void add_permutation(Topology& topology, FlowSet& flows, double bytes) {
  std::vector<std::int64_t> target(static_cast<std::size_t>(topology.devices()));
  std::iota(target.begin(), target.end(), 0);
  std::mt19937 generator(7);
  for (std::size_t i = target.size() - 1; i > 0; --i)
    std::swap(target[i], target[generator() % (i + 1)]);
  for (std::size_t i = 0; i < target.size(); ++i)
    topology.add(flows, static_cast<std::int64_t>(i), target[i], bytes);
}

}  // namespace

double flat_ring_all_reduce_seconds(std::int64_t devices, double bytes) {
  if (devices <= 1)
    return 0;
  Topology topology = flat(devices);
  const auto n = static_cast<double>(devices);
  return 2 * (n - 1) * round_seconds(topology, 1, bytes / n);  // All rounds are equal.
}

double flat_pairwise_all_to_all_seconds(std::int64_t devices, double bytes) {
  if (devices <= 1)
    return 0;
  Topology topology = flat(devices);
  double total = 0;
  for (std::int64_t shift = 1; shift < devices; ++shift)
    total += round_seconds(topology, shift, bytes / static_cast<double>(devices));
  return total;
}

double flat_direct_all_to_all_seconds(std::int64_t devices, double bytes) {
  if (devices <= 1)
    return 0;
  Topology topology = flat(devices);
  FlowSet flows;
  const auto n = static_cast<std::size_t>(devices);
  flows.reserve(n * (n - 1), 2);
  add_all_to_all(topology, flows, 0, devices, bytes / static_cast<double>(devices));
  return simulate(topology.network(), flows).end;
}

ContentionResult contended_seconds(Contention scenario,
                                   std::int64_t devices,
                                   double oversubscription,
                                   double bytes) {
  Topology topology = nodes_of_8(devices, oversubscription);
  const double share = bytes / static_cast<double>(devices);
  FlowSet flows;
  switch (scenario) {
    case Contention::AllToAll:
      add_all_to_all(topology, flows, 0, devices, share);
      break;
    case Contention::ExpertBlocks:
      add_blocks(topology, flows, 0, bytes);
      break;
    case Contention::WeightsAndBlocks:
      add_blocks(topology, flows, devices / (kCopies + 1), bytes);
      break;
    case Contention::Incast:
      for (std::int64_t i = 1; i < devices; ++i)
        topology.add(flows, i, 0, share);
      break;
    case Contention::Random:
      add_permutation(topology, flows, bytes);
      break;
    case Contention::WeightSync:
      break;
  }
  const std::size_t others = flows.size();
  if (scenario == Contention::WeightSync || scenario == Contention::WeightsAndBlocks)
    add_weights(topology, flows, bytes);
  const FluidResult result = simulate(topology.network(), flows);
  ContentionResult out;
  out.end = result.end;
  out.flows = flows.size();
  for (std::size_t f = 0; f < result.ends.size(); ++f) {
    double& end = out.group_end[f < others ? 0 : 1];
    end = std::max(end, result.ends[f]);
  }
  return out;
}

}  // namespace temper::sim_hw
