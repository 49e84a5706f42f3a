// Copies of tokens that a capacity factor drops in training.
//
// Each rank routes the T tokens of its micro-batch to top_k experts each, and an expert takes at
// most
//   C = ceil(factor T top_k / experts)
// copies from it. The rest are dropped: those tokens pass the layer without that expert (GShard,
// arXiv 2006.16668; Switch Transformer, arXiv 2101.03961; Megatron-LM,
// --moe-expert-capacity-factor, without padding to the capacity). Which copies are dropped
// (--moe-token-drop-policy) does not change how many.
// Expert e gets the share p of all copies, so a token chooses it with probability q = top_k p, and
// its copies from a rank are X ~ Binomial(T, q). Expected copies dropped: E[max(0, X - C)], a sum
// over the distribution. Chance matters, because one rank has few copies for each expert: with 32
// and equal loads, a capacity of 32 drops 7 %.
// Assumed: tokens of a rank choose independently. A load that no router can produce (q > 1) is
// taken as it is, without chance. Constants: none. Pure functions.
#pragma once

#include "sim_hw/parallel/balance_loss.hpp"
#include "sim_hw/parallel/expert_balance.hpp"

#include <cstdint>

namespace temper::sim_hw {

struct ExpertCapacity {
  double factor = 1;
  std::int64_t tokens = 1;  ///< Of a micro-batch on one rank.
  std::int64_t top_k = 1;

  /// C.
  std::int64_t copies(std::int64_t experts) const;
};

/// E[max(0, X - most)] of X ~ Binomial(n, q). Requires: 0 <= q <= 1.
double expected_excess(std::int64_t n, double q, std::int64_t most);

/// What the experts process of these loads, in the same unit: loads that sum to 1 leave 1 - the
/// dropped share.
ExpertLoads processed_loads(const ExpertLoads& routed, const ExpertCapacity& capacity);

/// The same of the loads of one exchange, whose replicas route their own sequences. Each replica
/// has these loads with lognormal deviations of the variance that its sequences leave; together
/// they have these loads exactly.
ExpertLoads processed_in_exchange(const ExpertLoads& routed,
                                  const ExchangeShape& exchange,
                                  const ExpertCapacity& capacity,
                                  Random& random);

}  // namespace temper::sim_hw
