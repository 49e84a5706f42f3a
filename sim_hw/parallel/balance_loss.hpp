// What a load-balance loss leaves of the imbalance of one expert exchange.
//
// The loss is a N sum f_e p_e over the N experts of a layer: f_e is the share of copies that expert
// e gets within a scope of tokens, p_e its mean probability there. Let the relative load of an
// expert in one sequence have the variance s^2 around its mean over all sequences. For independent
// sequences, with f = p and n sequences in the scope,
//   E[N sum f_e p_e] = 1 + (variance of the means) + s^2 / n
// The means count alike in every scope, and deviations of single sequences with 1 / n: over one
// sequence each has to be balanced (arXiv 2501.11873), over all replicas hardly any. Assumed: what
// the router gains from deviations is quadratic around the spread S that it has without a loss, so
// that it keeps the s that minimizes (s - S)^2 + strength s^2 / n:
//   s = S / (1 + strength / n)
// An exchange moves the tokens of g sequences. The load of an expert in it is its mean load times
// the mean of g lognormal deviations of log spread s and mean 1, drawn as one lognormal of the same
// variance, (exp(s^2) - 1) / g. The loss is derived for small s, where log spread and relative
// deviation are equal.
// Constants: none; S and `strength` are inputs. Pure functions.
#pragma once

#include "sim_hw/layout/mechanisms.hpp"
#include "sim_hw/parallel/expert_balance.hpp"

namespace temper::sim_hw {

/// Sequences whose loads a loss or an exchange sees together.
struct ExchangeShape {
  double spread = 0;           ///< Log spread of an expert's load between sequences.
  std::int64_t sequences = 1;  ///< Of one exchange.
  std::int64_t replicas = 1;   ///< Whose sequences these are.
};

/// Who shares the experts of one exchange.
struct ExchangeGroup {
  double sequences = 1;       ///< Of a micro-batch of one replica.
  std::int64_t replicas = 1;  ///< Whose micro-batches are in one exchange.
  std::int64_t all = 1;       ///< Replicas of the trainer.
};

/// The spread between sequences that a loss over `sequences` of them leaves.
double spread_under_loss(double spread, double strength, double sequences);
/// Exchanges of the group under a loss of this scope. `spread`: without a loss.
ExchangeShape exchange_under_loss(const ExchangeGroup& group,
                                  BalanceLoss over,
                                  double spread,
                                  double strength);

/// Loads of an exchange under mean loads. Their sum is that of the means only on average.
ExpertLoads draw_exchange(const ExpertLoads& means, const ExchangeShape& exchange, Random& random);
/// Imbalance of an exchange under mean loads: mean over kDrawnExchanges of them.
inline constexpr int kDrawnExchanges = 4;
double exchange_imbalance(const ExpertLoads& means,
                          const ExpertPlacement& placement,
                          const ExpertGroup& group,
                          const ExchangeShape& exchange,
                          Random& random);

}  // namespace temper::sim_hw
