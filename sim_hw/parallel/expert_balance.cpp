#include "sim_hw/parallel/expert_balance.hpp"

#include "core/portable_math.hpp"
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

/// Indices in descending order of `values`; equal ones keep theirs.
std::vector<std::size_t> descending(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  return order;
}

}  // namespace

LoadWalk::LoadWalk(const LoadTraceShape& shape, const Random& random)
    : keep_(1 - shape.drift),
      renew_(std::sqrt(1 - keep_ * keep_) * (shape.exponent ? 1 : shape.spread)),
      random_(random),
      logs_(static_cast<std::size_t>(shape.experts)) {
  for (double& x : logs_)
    x = (shape.exponent ? 1 : shape.spread) * random_.normal();
  for (std::int64_t rank = 1; shape.exponent && rank <= shape.experts; ++rank)
    of_rank_.push_back(portable_exp(-*shape.exponent * portable_log(as_double(rank))));
}

ExpertLoads LoadWalk::next() {
  if (!first_) {
    for (double& x : logs_)
      x = keep_ * x + renew_ * random_.normal();
  }
  first_ = false;
  ExpertLoads loads(logs_.size());
  if (of_rank_.empty()) {
    std::ranges::transform(logs_, loads.begin(), portable_exp);
  } else {
    const std::vector<std::size_t> ranked = descending(logs_);
    for (std::size_t rank = 0; rank < ranked.size(); ++rank)
      loads[ranked[rank]] = of_rank_[rank];
  }
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  for (double& load : loads)
    load /= sum;
  return loads;
}

std::vector<ExpertLoads> generate_loads(const LoadTraceShape& shape, const Random& random) {
  LoadWalk walk(shape, random);
  std::vector<ExpertLoads> trace;
  for (std::int64_t step = 0; step < shape.steps; ++step)
    trace.push_back(walk.next());
  return trace;
}

ExpertSlots replicate(const ExpertLoads& predicted, std::int64_t redundant) {
  ExpertSlots slots(predicted.size());
  std::iota(slots.begin(), slots.end(), std::size_t{0});
  ExpertLoads each = predicted;  // Load of one slot of each expert.
  std::vector<double> copies(predicted.size(), 1);
  for (std::int64_t i = 0; i < redundant; ++i) {
    const auto busiest = static_cast<std::size_t>(std::ranges::max_element(each) - each.begin());
    slots.push_back(busiest);
    each[busiest] = predicted[busiest] / ++copies[busiest];
  }
  return slots;
}

ExpertLoads loads_of_slots(const ExpertLoads& loads, const ExpertSlots& slots) {
  std::vector<double> copies(loads.size());
  for (const std::size_t expert : slots)
    ++copies[expert];
  ExpertLoads out;
  for (const std::size_t expert : slots)
    out.push_back(loads[expert] / copies[expert]);
  return out;
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
  std::vector<Bin> nodes(static_cast<std::size_t>(group.nodes));
  std::vector<Bin> devices(static_cast<std::size_t>(group.devices));
  ExpertPlacement placement(predicted.size());
  for (const std::size_t e : descending(predicted)) {
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

MigrationOutcome& MigrationOutcome::add(const MigrationOutcome& one, double count) {
  without_migration += one.without_migration / count;
  imbalance += one.imbalance / count;
  prediction_error += one.prediction_error / count;
  migrations += one.migrations;
  seconds += one.seconds / count;
  dropped += one.dropped / count;
  dropped_most += one.dropped_most / count;
  return *this;
}

ExpertMigration::ExpertMigration(std::int64_t experts, const ExpertGroup& group)
    : group_(group),
      original_{replicate(ExpertLoads(static_cast<std::size_t>(experts), 1.0), group.redundant),
                original_placement(experts + group.redundant, group)},
      placed_(original_) {}

double ExpertMigration::imbalance(const ExpertLoads& loads, const Placed& placed) const {
  return imbalance_of(loads_of_slots(loads, placed.slots), placed.devices, group_);
}

std::int64_t ExpertMigration::most_received(const Placed& next) const {
  const auto devices = static_cast<std::size_t>(group_.devices);
  std::vector<bool> had(placed_.slots.size() * devices);  // By expert and device.
  const auto at = [&](const Placed& placed, std::size_t slot) {
    return placed.slots[slot] * devices + static_cast<std::size_t>(placed.devices[slot]);
  };
  for (std::size_t slot = 0; slot < placed_.slots.size(); ++slot)
    had[at(placed_, slot)] = true;
  std::vector<std::int64_t> received(devices);
  for (std::size_t slot = 0; slot < next.slots.size(); ++slot) {
    if (!had[at(next, slot)])
      ++received[static_cast<std::size_t>(next.devices[slot])];
    had[at(next, slot)] = true;
  }
  return *std::ranges::max_element(received);
}

MigrationOutcome ExpertMigration::step(const ExpertLoads& loads, const MigrationRule& rule) {
  MigrationOutcome out;
  if (!predicted_.empty()) {
    Placed next{replicate(predicted_, group_.redundant), {}};
    next.devices = place_greedily(loads_of_slots(predicted_, next.slots), group_);
    const double gain = imbalance(predicted_, placed_) - imbalance(predicted_, next);
    const double cost = as_double(most_received(next)) * rule.expert_seconds;
    if (gain * rule.balanced_seconds * rule.horizon > cost) {
      placed_ = std::move(next);
      out.migrations = 1;
      out.seconds = cost;
    }
    for (std::size_t e = 0; e < loads.size(); ++e)
      out.prediction_error += std::abs(predicted_[e] - loads[e]) / 2;
  }
  out.without_migration = imbalance(loads, original_);
  out.imbalance = imbalance(loads, placed_);
  if (predicted_.empty())
    predicted_ = loads;
  for (std::size_t e = 0; e < loads.size(); ++e)
    predicted_[e] = rule.memory * predicted_[e] + (1 - rule.memory) * loads[e];
  return out;
}

MigrationOutcome migrate(const std::vector<ExpertLoads>& trace,
                         const ExpertGroup& group,
                         const MigrationRule& rule) {
  ExpertMigration layer(static_cast<std::int64_t>(trace.front().size()), group);
  MigrationOutcome out = kNoOutcome;
  const auto steps = static_cast<double>(trace.size());
  for (const ExpertLoads& loads : trace)
    out.add(layer.step(loads, rule), steps);
  return out;
}

}  // namespace temper::sim_hw
