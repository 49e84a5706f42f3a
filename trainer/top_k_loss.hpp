// The reverse KL of the policy to a teacher, as far as the teacher's K most likely tokens tell it.
// With p the policy's probabilities and q the teacher's, over these tokens and the rest of the
// vocabulary as one outcome more, of p_r = 1 - sum p_i and q_r = 1 - sum q_i:
//
//   D = sum p_i (log p_i - log q_i) + p_r (log p_r - log q_r)
//   dD / d log p_i = p_i ((log p_i - log q_i) - (log p_r - log q_r))
//
// D is at most the reverse KL over the whole vocabulary (outcomes are merged), at least 0, and 0
// only if all of them agree. Below kLeastRest, the sums of float log-probs are rounding, so p_r and
// q_r are at least that. Where p_r is that constant, dD / d log p_i = p_i (log p_i - log q_i + 1).
// docs/decisions/0036-reverse-kl-to-the-top-tokens-of-a-teacher.md says why it is this loss.
#pragma once

#include "trainer/engine.hpp"
#include "trainer/policy_loss.hpp"

#include <span>

namespace temper::trainer {

inline constexpr double kLeastRest = 1e-6;

/// Returns D at one token, and writes its derivatives by the log-probs of the policy. Requires: all
/// have one entry for each of the most likely tokens.
double top_k_divergence(std::span<const double> policy,
                        std::span<const double> teacher,
                        std::span<double> derivatives);

/// Adds the loss of the trained tokens of a response: algorithm.distillation times D. `policy`
/// begins with the log-probs of sample.top.ids. Returns the derivatives by them, 0 at tokens
/// without a loss; none without distillation_top_k. Requires: `losses` has one entry per trained
/// token, and sample.top is that of the algorithm.
std::vector<double> add_top_k_loss(const TrainSample& sample,
                                   std::span<const float> policy,
                                   const Algorithm& algorithm,
                                   std::span<TokenLoss> losses);

}  // namespace temper::trainer
