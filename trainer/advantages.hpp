// Advantages from the rewards of a batch. Scalar arithmetic.
//
//   R' = R - overlong_penalty * P        P: position of the end of the response in the overlong
//                                        buffer, 0 before it, 1 at the largest length
//                                        (2503.14476, equation 13)
//   A  = (R' - baseline) / (deviation + epsilon)
// Baseline: 0; the mean R' of the group; of the batch; of the other responses of the group.
// Deviation: 1; that of R' within the group; over the batch, about the baseline: the mean of the
// group if the baseline is per group, else that of the batch. Deviations are of the population.
// The samples of a group need not be adjacent. R' = baseline gives 0 for any deviation.
#pragma once

#include "trainer/algorithm.hpp"
#include "trainer/engine.hpp"

#include <span>
#include <vector>

namespace temper::trainer {

/// R' of one response.
double shaped_reward(double reward, Tokens response, const Algorithm& algorithm);

/// One advantage per sample, in order. Requires: no critic, whose advantages are those of gae.hpp.
std::vector<double> advantages(std::span<const TrainSample> batch, const Algorithm& algorithm);

}  // namespace temper::trainer
