#include "trainer/torch/update_sums.hpp"

#include <cmath>

namespace temper::trainer {

void set_ratio_metrics(const UpdateSums& sums, UpdateMetrics& metrics) {
  const double fresh = sums.tokens - sums.stale;
  metrics.ratio_mean = sums.ratio / sums.tokens;
  metrics.log_ratio = sums.log_ratio / sums.tokens;
  metrics.effective_samples = std::isfinite(sums.squared_ratio)
                                  ? sums.ratio * sums.ratio / (sums.squared_ratio * sums.tokens)
                                  : 1 / sums.tokens;  // One token has all the weight.
  metrics.mismatch = fresh > 0 ? (sums.log_ratio - sums.stale_log_ratio) / fresh : 0;
  metrics.stale_ratio = sums.stale > 0 ? sums.stale_log_ratio / sums.stale : 0;
  metrics.stale_tokens = sums.stale / sums.tokens;
}

void add_losses(std::span<const TokenLoss> losses,
                std::span<const double> current,
                std::span<const double> behaviour,
                double share,
                const TrainSample& sample,
                UpdateSums& sums) {
  std::size_t place = 0;
  for (std::size_t t = 0; t < losses.size(); ++t, ++place) {
    while (!sample.is_trained(place))
      ++place;
    const double gap = current[t] - behaviour[t];
    if (!std::isnan(sums.largest.log) && !(gap <= sums.largest.log))  // NaN counts as the largest.
      sums.largest = {gap, sample.id, sample.group};
    sums.ratio += std::exp(gap);
    sums.squared_ratio += std::exp(2 * gap);
    sums.log_ratio += std::abs(gap);
    if (sample.age(place) > 0) {
      sums.stale += 1;
      sums.stale_log_ratio += std::abs(gap);
    }
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
