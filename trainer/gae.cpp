#include "trainer/gae.hpp"

#include "core/check.hpp"
#include "trainer/advantages.hpp"

#include <algorithm>
#include <cmath>

namespace temper::trainer {
namespace {

/// Mean and population variance of numbers that come one by one.
class Spread {
 public:
  void add(double x) {
    n_ += 1;
    const double distance = x - mean_;
    mean_ += distance / n_;
    squares_ += distance * (x - mean_);
  }
  double mean() const { return mean_; }
  double variance() const { return n_ > 0 ? squares_ / n_ : 0; }

 private:
  double n_ = 0, mean_ = 0, squares_ = 0;
};

void whiten(std::vector<TokenEstimates>& estimates, double epsilon) {
  Spread all;
  for (const TokenEstimates& e : estimates) {
    for (const double a : e.advantages)
      all.add(a);
  }
  const double scale = std::sqrt(all.variance()) + epsilon;
  for (TokenEstimates& e : estimates) {
    for (double& a : e.advantages)
      a = a == all.mean() ? 0 : (a - all.mean()) / scale;
  }
}

}  // namespace

std::vector<double> token_rewards(const TrainSample& s, const Algorithm& a) {
  const std::size_t trained = s.trained_tokens();
  std::vector<double> out;
  out.reserve(trained);
  double early = 0;  // Before the first sampled token.
  double from_environment = 0;
  for (std::size_t t = 0; t < s.response.size(); ++t) {
    if (s.is_trained(t)) {
      const bool has_kl = a.critic.kl > 0;
      out.push_back(early - (has_kl ? a.critic.kl * (static_cast<double>(s.behaviour_logprobs[t]) -
                                                     static_cast<double>(s.reference_logprobs[t]))
                                    : 0));
      early = 0;
    }
    const double reward = s.token_rewards.empty() ? 0 : static_cast<double>(s.token_rewards[t]);
    from_environment += reward;
    (out.empty() ? early : out.back()) += reward;
  }
  if (out.empty())
    return out;
  const Tokens length(static_cast<std::int64_t>(s.response.size()));
  out.back() += shaped_reward(s.reward, length, a) - from_environment;
  return out;
}

TokenEstimates gae(std::span<const double> rewards,
                   std::vector<double> values,
                   const CriticConfig& critic) {
  TEMPER_CHECK(rewards.size() == values.size(), "a value per reward");
  TokenEstimates out;
  out.values = std::move(values);
  out.advantages.resize(rewards.size());
  out.returns.resize(rewards.size());
  double next_value = 0;
  double next_advantage = 0;
  for (std::size_t t = rewards.size(); t-- > 0;) {
    const double delta = rewards[t] + critic.discount * next_value - out.values[t];
    next_advantage = delta + critic.discount * critic.gae_lambda * next_advantage;
    next_value = out.values[t];
    out.advantages[t] = next_advantage;
    out.returns[t] = next_advantage + next_value;
  }
  return out;
}

std::vector<TokenEstimates> token_estimates(std::span<const TrainSample> batch,
                                            std::vector<std::vector<double>> values,
                                            const Algorithm& algorithm) {
  TEMPER_CHECK(batch.size() == values.size(), "the values of each sample");
  std::vector<TokenEstimates> out;
  out.reserve(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i)
    out.push_back(gae(token_rewards(batch[i], algorithm), std::move(values[i]), algorithm.critic));
  if (algorithm.advantage_std == AdvantageStd::Batch)
    whiten(out, algorithm.advantage_epsilon);
  return out;
}

ValueLoss value_loss(double value, double before, double target, const CriticConfig& critic) {
  const double error = value - target;
  ValueLoss out{error * error / 2, error, false};
  if (!critic.value_clip)
    return out;
  const double within = std::clamp(value, before - *critic.value_clip, before + *critic.value_clip);
  const double limited = (within - target) * (within - target) / 2;
  if (limited > out.loss)
    out = {limited, 0, true};
  return out;
}

double explained_variance(std::span<const TokenEstimates> estimates) {
  Spread returns;
  Spread errors;
  for (const TokenEstimates& e : estimates) {
    for (std::size_t t = 0; t < e.returns.size(); ++t) {
      returns.add(e.returns[t]);
      errors.add(e.returns[t] - e.values[t]);
    }
  }
  return returns.variance() > 0 ? 1 - errors.variance() / returns.variance() : 0;
}

double mean_value(std::span<const TokenEstimates> estimates) {
  Spread values;
  for (const TokenEstimates& e : estimates) {
    for (const double v : e.values)
      values.add(v);
  }
  return values.mean();
}

}  // namespace temper::trainer
