#include "trainer/torch/grpo.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace temper::trainer {

std::vector<double> group_advantages(std::span<const TrainSample> batch, double epsilon) {
  struct Moments {
    double n = 0, sum = 0, squares = 0;
  };
  std::map<GroupId, Moments> groups;
  for (const TrainSample& s : batch) {
    Moments& m = groups[s.group];
    m.n += 1;
    m.sum += s.reward;
  }
  for (const TrainSample& s : batch) {
    Moments& m = groups[s.group];
    const double deviation = s.reward - m.sum / m.n;
    m.squares += deviation * deviation;
  }
  std::vector<double> advantages;
  advantages.reserve(batch.size());
  for (const TrainSample& s : batch) {
    const Moments& m = groups[s.group];
    const double deviation = s.reward - m.sum / m.n;
    const double scale = std::sqrt(m.squares / m.n) + epsilon;
    advantages.push_back(deviation == 0 ? 0 : deviation / scale);
  }
  return advantages;
}

TokenLoss token_loss(const TokenInputs& in, const AlgorithmConfig& config) {
  TokenLoss out;
  out.ratio = std::exp(in.logprob - in.behaviour);
  const double clipped_ratio = std::clamp(out.ratio, 1 - config.clip_low, 1 + config.clip_high);
  const double plain = out.ratio * in.advantage;
  const double clipped = clipped_ratio * in.advantage;
  out.clipped = clipped < plain;
  out.loss = -std::min(plain, clipped);
  out.d_logprob = out.clipped ? 0 : -plain;
  if (in.reference && config.kl > 0) {
    const double gap = *in.reference - in.logprob;
    out.kl = std::exp(gap) - 1 - gap;
    out.loss += config.kl * out.kl;
    out.d_logprob += config.kl * (1 - std::exp(gap));
  }
  return out;
}

}  // namespace temper::trainer
