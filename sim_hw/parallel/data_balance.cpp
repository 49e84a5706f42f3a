#include "sim_hw/parallel/data_balance.hpp"

#include "sim_hw/model/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace temper::sim_hw {

std::vector<double> pack_documents(const DocumentShape& documents,
                                   std::int64_t samples,
                                   std::int64_t seq,
                                   Random& random) {
  std::vector<double> costs;
  const double whole = as_double(seq);
  for (std::int64_t i = 0; i < samples; ++i) {
    double left = whole;
    double squares = 0;
    while (left > 0) {
      const double drawn = documents.median * std::exp(documents.spread * random.normal());
      const double length = std::min(left, std::max(1.0, std::round(drawn)));
      squares += length * length;
      left -= length;
    }
    costs.push_back(squares);
  }
  return costs;
}

SampleOrder original_order(std::size_t samples) {
  SampleOrder order(samples);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

SampleOrder balanced_order(const std::vector<double>& costs, const SampleReplicas& shape) {
  SampleOrder falling = original_order(costs.size());
  std::ranges::stable_sort(falling,
                           [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  const auto replicas = static_cast<std::size_t>(shape.replicas);
  const auto coupled = static_cast<std::size_t>(shape.coupled);
  const std::size_t each = costs.size() / replicas;
  SampleOrder order(costs.size());
  std::vector<double> totals(replicas / coupled);
  for (std::size_t row = 0; row < each; ++row) {
    std::vector<std::size_t> groups(totals.size());
    std::iota(groups.begin(), groups.end(), std::size_t{0});
    std::ranges::stable_sort(groups,
                             [&](std::size_t a, std::size_t b) { return totals[a] < totals[b]; });
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::size_t r = 0; r < coupled; ++r) {
        const std::size_t sample = falling[row * replicas + g * coupled + r];
        order[(groups[g] * coupled + r) * each + row] = sample;
        totals[groups[g]] += costs[sample];
      }
    }
  }
  return order;
}

double attention_imbalance(const std::vector<double>& costs,
                           const SampleOrder& order,
                           const SampleReplicas& shape,
                           std::int64_t seq) {
  const auto replicas = static_cast<std::size_t>(shape.replicas);
  const auto coupled = static_cast<std::size_t>(shape.coupled);
  const auto micro_batch = static_cast<std::size_t>(shape.micro_batch);
  const std::size_t each = costs.size() / replicas;
  double slowest = 0;
  for (std::size_t group = 0; group < replicas; group += coupled) {
    double sum = 0;
    for (std::size_t row = 0; row < each; row += micro_batch) {
      double most = 0;
      for (std::size_t r = group; r < group + coupled; ++r) {
        double cost = 0;
        for (std::size_t i = row; i < std::min(row + micro_batch, each); ++i)
          cost += costs[order[r * each + i]];
        most = std::max(most, cost);
      }
      sum += most;
    }
    slowest = std::max(slowest, sum);
  }
  const double all = std::accumulate(costs.begin(), costs.end(), 0.0);
  const double whole = as_double(seq) * as_double(seq) * as_double(static_cast<std::int64_t>(each));
  return 1 + (slowest - all / as_double(shape.replicas)) / whole;
}

}  // namespace temper::sim_hw
