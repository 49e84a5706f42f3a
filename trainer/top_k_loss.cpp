#include "trainer/top_k_loss.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace temper::trainer {
namespace {

double rest_of(std::span<const double> logprobs) {
  return 1 - std::transform_reduce(
                 logprobs.begin(), logprobs.end(), 0.0, std::plus(), [](double logprob) {
                   return std::exp(logprob);
                 });
}

}  // namespace

double top_k_divergence(std::span<const double> policy,
                        std::span<const double> teacher,
                        std::span<double> derivatives) {
  const double rest = rest_of(policy);
  const double log_rest =
      std::log(std::max(rest, kLeastRest) / std::max(rest_of(teacher), kLeastRest));
  double sum = std::max(rest, kLeastRest) * log_rest;
  const double of_rest = rest > kLeastRest ? log_rest : -1;
  for (std::size_t i = 0; i < policy.size(); ++i) {
    const double p = std::exp(policy[i]), gap = policy[i] - teacher[i];
    sum += p * gap;
    derivatives[i] = p * (gap - of_rest);
  }
  return sum;
}

std::vector<double> add_top_k_loss(const TrainSample& sample,
                                   std::span<const float> policy,
                                   const Algorithm& a,
                                   std::span<TokenLoss> losses) {
  const auto k = static_cast<std::size_t>(a.distillation_top_k);
  if (k == 0)
    return {};
  const std::vector<double> teacher(sample.top.logprobs.begin(), sample.top.logprobs.end());
  policy = policy.first(teacher.size());
  const std::vector<double> own(policy.begin(), policy.end());
  std::vector<double> derivatives(own.size());
  auto loss = losses.begin();
  for (std::size_t t = 0; t < sample.response.size(); ++t) {
    if (!sample.is_trained(t))
      continue;
    const auto at_token = [&](auto& values) { return std::span(values).subspan(t * k, k); };
    (loss++)->loss +=
        a.distillation * top_k_divergence(at_token(own), at_token(teacher), at_token(derivatives));
    for (double& d : at_token(derivatives))
      d *= a.distillation;
  }
  return derivatives;
}

}  // namespace temper::trainer
