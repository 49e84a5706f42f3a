// What the rewards of a batch say of each response. Scalar arithmetic.
//
//   R' = R - overlong_penalty * P        P: how far the response is into the overlong buffer,
//                                        0 before it, 1 at the longest response (2503.14476, 13)
//   A  = (R' - baseline) / (deviation + epsilon)
// Baseline: 0; the mean R' of the group; of the batch; of the group's other responses. Deviation:
// 1; that of R' within the group; over the batch, about the baseline: the group's mean where the
// baseline looks at groups, else the batch's. Deviations are of the population.
// The samples of a group may lie apart. R' = baseline gives 0, whatever the deviation.
#pragma once

#include "trainer/algorithm.hpp"
#include "trainer/engine.hpp"

#include <span>
#include <vector>

namespace temper::trainer {

/// R' of one response.
double shaped_reward(double reward, Tokens response, const Algorithm& algorithm);

/// One advantage per sample, in order.
std::vector<double> advantages(std::span<const TrainSample> batch, const Algorithm& algorithm);

}  // namespace temper::trainer
