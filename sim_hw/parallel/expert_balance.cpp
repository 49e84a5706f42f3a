#include "sim_hw/parallel/expert_balance.hpp"

#include "sim_hw/model/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace temper::sim_hw {
namespace {

struct Bin {
  double load = 0;
  std::int64_t experts = 0;
};

/// The least loaded of bins [from, to) with fewer than `most` experts.
std::size_t least_loaded(const std::vector<Bin>& bins,
                         std::size_t from,
                         std::size_t to,
                         std::int64_t most) {
  std::size_t best = to;
  for (std::size_t i = from; i < to; ++i) {
    if (bins[i].experts < most && (best == to || bins[i].load < bins[best].load))
      best = i;
  }
  return best;
}

/// Largest number of experts that one device receives between two placements.
std::int64_t most_received(const ExpertPlacement& from,
                           const ExpertPlacement& to,
                           std::int64_t devices) {
  std::vector<std::int64_t> received(static_cast<std::size_t>(devices));
  for (std::size_t e = 0; e < from.size(); ++e) {
    if (from[e] != to[e])
      ++received[static_cast<std::size_t>(to[e])];
  }
  return *std::ranges::max_element(received);
}

}  // namespace

std::vector<ExpertLoads> generate_loads(const LoadTraceShape& shape, Random& random) {
  const auto experts = static_cast<std::size_t>(shape.experts);
  const double keep = 1 - shape.drift;
  const double renew = std::sqrt(1 - keep * keep) * shape.spread;
  std::vector<double> logs(experts);
  for (double& x : logs)
    x = shape.spread * random.normal();
  std::vector<ExpertLoads> trace;
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    ExpertLoads loads(experts);
    std::ranges::transform(logs, loads.begin(), [](double x) { return std::exp(x); });
    const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
    for (double& load : loads)
      load /= sum;
    trace.push_back(std::move(loads));
    for (double& x : logs)
      x = keep * x + renew * random.normal();
  }
  return trace;
}

ExpertPlacement original_placement(std::int64_t experts, const ExpertGroup& group) {
  ExpertPlacement placement(static_cast<std::size_t>(experts));
  const std::int64_t each = experts / group.devices;
  for (std::int64_t e = 0; e < experts; ++e)
    placement[static_cast<std::size_t>(e)] = e / each;
  return placement;
}

ExpertPlacement place_greedily(const ExpertLoads& predicted, const ExpertGroup& group) {
  const auto experts = static_cast<std::int64_t>(predicted.size());
  const auto per_node = static_cast<std::size_t>(group.devices / group.nodes);
  std::vector<std::size_t> order(predicted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return predicted[a] > predicted[b]; });
  std::vector<Bin> nodes(static_cast<std::size_t>(group.nodes));
  std::vector<Bin> devices(static_cast<std::size_t>(group.devices));
  ExpertPlacement placement(predicted.size());
  for (const std::size_t e : order) {
    const std::size_t node = least_loaded(nodes, 0, nodes.size(), experts / group.nodes);
    const std::size_t device =
        least_loaded(devices, node * per_node, (node + 1) * per_node, experts / group.devices);
    for (Bin* bin : {&nodes[node], &devices[device]}) {
      bin->load += predicted[e];
      ++bin->experts;
    }
    placement[e] = static_cast<std::int64_t>(device);
  }
  return placement;
}

double imbalance_of(const ExpertLoads& loads,
                    const ExpertPlacement& placement,
                    const ExpertGroup& group) {
  std::vector<double> devices(static_cast<std::size_t>(group.devices));
  double sum = 0;
  for (std::size_t e = 0; e < loads.size(); ++e) {
    devices[static_cast<std::size_t>(placement[e])] += loads[e];
    sum += loads[e];
  }
  return *std::ranges::max_element(devices) * as_double(group.devices) / sum;
}

MigrationOutcome migrate(const std::vector<ExpertLoads>& trace,
                         const ExpertGroup& group,
                         const MigrationRule& rule) {
  const ExpertPlacement start =
      original_placement(static_cast<std::int64_t>(trace.front().size()), group);
  ExpertPlacement placement = start;
  ExpertLoads predicted;
  MigrationOutcome out{0, 0, 0, 0};
  for (const ExpertLoads& loads : trace) {
    if (!predicted.empty()) {
      ExpertPlacement next = place_greedily(predicted, group);
      const double gain =
          imbalance_of(predicted, placement, group) - imbalance_of(predicted, next, group);
      const double cost =
          as_double(most_received(placement, next, group.devices)) * rule.expert_seconds;
      if (gain * rule.balanced_seconds * rule.horizon > cost) {
        placement = std::move(next);
        ++out.migrations;
        out.seconds += cost;
      }
    }
    out.without_migration += imbalance_of(loads, start, group);
    out.imbalance += imbalance_of(loads, placement, group);
    if (predicted.empty())
      predicted = loads;
    for (std::size_t e = 0; e < loads.size(); ++e)
      predicted[e] = rule.memory * predicted[e] + (1 - rule.memory) * loads[e];
  }
  const auto steps = static_cast<double>(trace.size());
  out.without_migration /= steps;
  out.imbalance /= steps;
  out.seconds /= steps;
  return out;
}

}  // namespace temper::sim_hw
