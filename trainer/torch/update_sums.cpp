#include "trainer/torch/update_sums.hpp"

#include <cmath>

namespace temper::trainer {

void add_losses(std::span<const TokenLoss> losses,
                std::span<const double> current,
                std::span<const double> behaviour,
                double share,
                const TrainSample& sample,
                UpdateSums& sums) {
  for (std::size_t t = 0; t < losses.size(); ++t) {
    const double gap = current[t] - behaviour[t];
    if (!std::isnan(sums.largest.log) && !(gap <= sums.largest.log))  // NaN counts as the largest.
      sums.largest = {gap, sample.id, sample.group};
    sums.ratio += std::exp(gap);
    sums.log_ratio += std::abs(gap);
    sums.loss += losses[t].loss * share;
    sums.kl += losses[t].kl;
    sums.clipped += losses[t].clipped ? 1 : 0;
    sums.weight += losses[t].weight;
    sums.capped += losses[t].capped ? 1 : 0;
    sums.negative_logprob -= current[t];
    sums.tokens += 1;
  }
}

}  // namespace temper::trainer
