#include "sim_hw/parallel/balance_loss.hpp"

#include "core/portable_math.hpp"
#include "sim_hw/model/numbers.hpp"

#include <algorithm>
#include <cmath>

namespace temper::sim_hw {

double spread_under_loss(double spread, double strength, double sequences) {
  return spread / (1 + strength / sequences);
}

ExchangeShape exchange_under_loss(const ExchangeGroup& group,
                                  BalanceLoss over,
                                  double spread,
                                  double strength) {
  double scope = group.sequences;
  if (over == BalanceLoss::ExpertGroup)
    scope *= as_double(group.replicas);
  if (over == BalanceLoss::Everywhere)
    scope *= as_double(group.all);
  return {spread_under_loss(spread, strength, scope),
          std::max<std::int64_t>(1, std::llround(group.sequences * as_double(group.replicas))),
          group.replicas};
}

ExpertLoads draw_exchange(const ExpertLoads& means, const ExchangeShape& exchange, Random& random) {
  const double one = portable_exp(exchange.spread * exchange.spread) - 1;
  const double variance = portable_log(1 + one / as_double(exchange.sequences));
  const double spread = std::sqrt(variance);
  ExpertLoads loads(means.size());
  for (std::size_t e = 0; e < means.size(); ++e)
    loads[e] = means[e] * portable_exp(spread * random.normal() - variance / 2);
  return loads;
}

double exchange_imbalance(const ExpertLoads& means,
                          const ExpertPlacement& placement,
                          const ExpertGroup& group,
                          const ExchangeShape& exchange,
                          Random& random) {
  double sum = 0;
  for (int i = 0; i < kDrawnExchanges; ++i)
    sum += imbalance_of(draw_exchange(means, exchange, random), placement, group);
  return sum / kDrawnExchanges;
}

}  // namespace temper::sim_hw
