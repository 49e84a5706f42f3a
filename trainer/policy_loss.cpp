#include "trainer/policy_loss.hpp"

#include "core/check.hpp"

#include <algorithm>
#include <cmath>

namespace temper::trainer {
namespace {

constexpr WeightLevel level_of(RatioLevel level) {
  return level == RatioLevel::Sequence ? WeightLevel::Geometric : WeightLevel::Token;
}

/// Importance ratios of two policies over a response: per token, or one for all.
class Ratio {
 public:
  Ratio(std::span<const double> of, std::span<const double> to, WeightLevel level)
      : of_(of), to_(to), level_(level) {
    if (level_ == WeightLevel::Token)
      return;
    double sum = 0;
    for (std::size_t t = 0; t < of_.size(); ++t)
      sum += of_[t] - to_[t];
    if (level_ == WeightLevel::Geometric)
      sum /= static_cast<double>(std::max<std::size_t>(1, of_.size()));
    whole_ = std::exp(sum);
  }
  double operator()(std::size_t t) const {
    return level_ == WeightLevel::Token ? std::exp(of_[t] - to_[t]) : whole_;
  }

 private:
  const std::span<const double> of_, to_;
  const WeightLevel level_;
  double whole_ = 1;
};

double clip(double ratio, const Algorithm& a) {
  return std::clamp(ratio, 1 - a.clip_low, 1 + a.clip_high);
}

/// The derivative by a log-prob is the ratio itself.
void add_clipped(double ratio, double advantage, const Algorithm& a, TokenLoss& out) {
  const double plain = ratio * advantage;
  const double clipped = clip(ratio, a) * advantage;
  out.clipped = clipped < plain;
  out.loss = -out.weight * std::min(plain, clipped);
  out.d_logprob = out.clipped ? 0 : -out.weight * plain;
}

void weigh(double ratio, const Algorithm& a, TokenLoss& out) {
  const double within = std::clamp(ratio, a.behaviour_weight_floor, a.behaviour_weight_cap);
  out.capped = within != ratio;
  const bool masks =
      a.objective == Objective::Decoupled && a.behaviour_weight_mode == WeightMode::Mask;
  out.weight = out.capped && masks ? 0 : within;
}

/// With one ratio for the response, each log-prob has 1/n of the derivative of each of n losses.
void share_derivatives(std::span<TokenLoss> tokens) {
  double sum = 0;
  for (const TokenLoss& token : tokens)
    sum += token.d_logprob;
  for (TokenLoss& token : tokens)
    token.d_logprob = sum / static_cast<double>(tokens.size());
}

void add_weighted_logprob(double weight, double logprob, double advantage, TokenLoss& out) {
  out.loss = -weight * advantage * logprob;
  out.d_logprob = -weight * advantage;
}

void add_kl(double logprob, double reference, double weight, TokenLoss& out) {
  const double gap = reference - logprob;
  out.kl = std::exp(gap) - 1 - gap;
  if (weight == 0)  // Only a metric: infinity times 0 is NaN.
    return;
  out.loss += weight * out.kl;
  out.d_logprob += weight * (1 - std::exp(gap));
}

}  // namespace

void response_loss(const ResponseInputs& in, const Algorithm& a, std::span<TokenLoss> out) {
  const bool around_proximal = needs_proximal(a.objective);
  TEMPER_CHECK(out.size() == in.current.size() && in.behaviour.size() == out.size(),
               "a log-prob per token");
  TEMPER_CHECK(!around_proximal || in.proximal.size() == out.size(),
               "the objective needs proximal log-probs");
  TEMPER_CHECK(in.reference.size() == out.size() || (in.reference.empty() && !needs_reference(a)),
               "log-probs of the reference, if any or if the loss needs them");
  TEMPER_CHECK(in.token_advantages.empty() || in.token_advantages.size() == out.size(),
               "an advantage per token");
  const Ratio ratio(in.current, around_proximal ? in.proximal : in.behaviour, level_of(a.ratio));
  const bool weighted = a.objective == Objective::Decoupled || a.objective == Objective::Tis;
  const Ratio stale(weighted ? in.proximal : in.current, in.behaviour, a.behaviour_weight_level);
  for (std::size_t t = 0; t < out.size(); ++t) {
    TokenLoss& token = out[t];
    token = TokenLoss();
    double advantage =
        a.reward_weight * (in.token_advantages.empty() ? in.advantage : in.token_advantages[t]);
    if (a.distillation > 0 && a.distillation_top_k == 0)
      advantage += a.distillation * (in.reference[t] - in.behaviour[t]);
    switch (a.objective) {
      case Objective::Decoupled:
      case Objective::Tis:
        weigh(stale(t), a, token);
        [[fallthrough]];
      case Objective::Clip:
      case Objective::Naive:
        add_clipped(ratio(t), advantage, a, token);
        break;
      case Objective::Cispo: {
        const double clipped = clip(ratio(t), a);
        token.clipped = clipped != ratio(t);
        add_weighted_logprob(clipped, in.current[t], advantage, token);
        break;
      }
      case Objective::Reinforce:
        add_weighted_logprob(1, in.current[t], advantage, token);
        break;
    }
  }
  const bool is_surrogate = a.objective != Objective::Cispo && a.objective != Objective::Reinforce;
  if (a.ratio == RatioLevel::Sequence && is_surrogate)
    share_derivatives(out);
  if (in.reference.empty())
    return;
  for (std::size_t t = 0; t < out.size(); ++t)
    add_kl(in.current[t], in.reference[t], a.kl, out[t]);
}

double token_share(const Algorithm& a, std::size_t tokens_of_response) {
  switch (a.average) {
    case Averaging::Token:
      return 1;
    case Averaging::Sequence:
      return 1.0 / static_cast<double>(tokens_of_response);
    case Averaging::Constant:
      return 1.0 / static_cast<double>(a.longest_response.count());
  }
  return 0;
}

double shares(const Algorithm& a, std::size_t tokens, std::size_t responses) {
  return static_cast<double>(a.average == Averaging::Token ? tokens : responses);
}

}  // namespace temper::trainer
