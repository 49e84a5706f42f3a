#include "sim_hw/parallel/expert_capacity.hpp"

#include "sim_hw/model/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace temper::sim_hw {
namespace {

/// Terms of the distribution below this share of its largest one are left out.
constexpr double kNegligible = 1e-18;

}  // namespace

std::int64_t ExpertCapacity::copies(std::int64_t experts) const {
  return static_cast<std::int64_t>(
      std::ceil(factor * as_double(tokens * top_k) / as_double(experts)));
}

double expected_excess(std::int64_t n, double q, std::int64_t most) {
  if (q >= 1)
    return as_double(std::max<std::int64_t>(0, n - most));
  if (q <= 0 || most >= n)
    return 0;
  const auto over = [&](std::int64_t x) { return as_double(std::max<std::int64_t>(0, x - most)); };
  // From the mode to both sides, in units of its probability.
  const auto mode = std::min(n, static_cast<std::int64_t>(as_double(n + 1) * q));
  const double odds = q / (1 - q);
  double sum = 1, excess = over(mode);
  double term = 1;
  for (std::int64_t x = mode; x < n && term > kNegligible; ++x) {
    term *= as_double(n - x) / as_double(x + 1) * odds;
    sum += term;
    excess += term * over(x + 1);
  }
  term = 1;
  for (std::int64_t x = mode; x > 0 && term > kNegligible; --x) {
    term *= as_double(x) / (as_double(n - x + 1) * odds);
    sum += term;
    excess += term * over(x - 1);
  }
  return excess / sum;
}

ExpertLoads processed_loads(const ExpertLoads& routed, const ExpertCapacity& capacity) {
  const double sum = std::accumulate(routed.begin(), routed.end(), 0.0);
  const double copies = as_double(capacity.tokens * capacity.top_k);
  const std::int64_t most = capacity.copies(std::ssize(routed));
  ExpertLoads out = routed;
  double load = -1, dropped = 0;  // Of the last expert: equal loads are common.
  for (double& each : out) {
    if (each != load) {
      load = each;
      const double q = as_double(capacity.top_k) * load / sum;
      const double excess = q <= 1
                                ? expected_excess(capacity.tokens, q, most)
                                : std::max(0.0, as_double(capacity.tokens) * q - as_double(most));
      dropped = excess / copies * sum;
    }
    each -= dropped;
  }
  return out;
}

ExpertLoads processed_in_exchange(const ExpertLoads& routed,
                                  const ExchangeShape& exchange,
                                  const ExpertCapacity& capacity,
                                  Random& random) {
  const auto replicas = static_cast<std::size_t>(exchange.replicas);
  if (replicas < 2 || exchange.spread == 0)
    return processed_loads(routed, capacity);
  ExchangeShape one = exchange;
  one.sequences = std::max<std::int64_t>(1, exchange.sequences / exchange.replicas);
  std::vector<ExpertLoads> parts(replicas);
  for (ExpertLoads& part : parts)
    part = draw_exchange(routed, one, random);
  for (std::size_t e = 0; e < routed.size(); ++e) {
    double sum = 0;
    for (const ExpertLoads& part : parts)
      sum += part[e];
    for (ExpertLoads& part : parts)
      part[e] *= sum > 0 ? routed[e] / sum : 0;
  }
  ExpertLoads out(routed.size());
  for (const ExpertLoads& part : parts) {
    const ExpertLoads processed = processed_loads(part, capacity);
    std::ranges::transform(out, processed, out.begin(), std::plus());
  }
  return out;
}

}  // namespace temper::sim_hw
