// Losses and advantages written once more, as plainly as the papers state them, for tests to
// compare with. Derivatives are finite differences. Shares only the names of choices with the
// trainer.
#pragma once

#include "trainer/algorithm.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace temper::tests {

/// Log-probs of one response under each policy.
struct ReferenceResponse {
  std::vector<double> current, behaviour, proximal, reference;
  double advantage = 0;
};

/// Advantage of token t: from the reward, and from what the teacher thinks of the token.
inline double reference_advantage(const ReferenceResponse& r,
                                  std::size_t t,
                                  const trainer::Algorithm& a) {
  const double teacher = r.reference.empty() ? 1 : std::exp(r.reference[t]);
  const double weight = a.distillation_top_k > 0 ? 0 : a.distillation;  // Else it is a loss.
  return a.reward_weight * r.advantage + weight * std::log(teacher / std::exp(r.behaviour[t]));
}

/// exp of the log-ratio of token t, or of the mean log-ratio of the response.
inline double reference_ratio(const std::vector<double>& a,
                              const std::vector<double>& b,
                              std::size_t t,
                              trainer::RatioLevel level) {
  if (level == trainer::RatioLevel::Token)
    return std::exp(a[t]) / std::exp(b[t]);
  double product = 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    product *= std::exp(a[i]) / std::exp(b[i]);
  return std::pow(product, 1.0 / static_cast<double>(a.size()));
}

/// Proximal over behaviour probability, before its range: of the token, or of the response as the
/// geometric mean or the product of its tokens' ratios.
inline double reference_weight(const ReferenceResponse& r,
                               std::size_t t,
                               const trainer::Algorithm& a) {
  if (a.behaviour_weight_level == trainer::WeightLevel::Token)
    return std::exp(r.proximal[t]) / std::exp(r.behaviour[t]);
  double product = 1;
  for (std::size_t i = 0; i < r.proximal.size(); ++i)
    product *= std::exp(r.proximal[i]) / std::exp(r.behaviour[i]);
  const bool is_mean = a.behaviour_weight_level == trainer::WeightLevel::Geometric;
  return is_mean ? std::pow(product, 1.0 / static_cast<double>(r.proximal.size())) : product;
}

/// PPO's pessimistic surrogate, by cases.
inline double reference_surrogate(double ratio, double advantage, double low, double high) {
  if (advantage >= 0 && ratio > 1 + high)
    return (1 + high) * advantage;
  if (advantage < 0 && ratio < 1 - low)
    return (1 - low) * advantage;
  return ratio * advantage;
}

/// Loss of token t. `frozen` is what the loss sees of the current log-probs where the algorithm
/// stops the gradient.
inline double reference_token_loss(const ReferenceResponse& r,
                                   const std::vector<double>& frozen,
                                   std::size_t t,
                                   const trainer::Algorithm& a) {
  using O = trainer::Objective;
  const double advantage = reference_advantage(r, t, a);
  const auto surrogate = [&](const std::vector<double>& old) {
    return reference_surrogate(
        reference_ratio(r.current, old, t, a.ratio), advantage, a.clip_low, a.clip_high);
  };
  double loss = 0;
  switch (a.objective) {
    case O::Clip:
      loss = -surrogate(r.behaviour);
      break;
    case O::Naive:
      loss = -surrogate(r.proximal);
      break;
    case O::Decoupled: {
      double weight = reference_weight(r, t, a);
      const bool masks = a.behaviour_weight_mode == trainer::WeightMode::Mask;
      if (weight > a.behaviour_weight_cap)
        weight = masks ? 0 : a.behaviour_weight_cap;
      else if (weight < a.behaviour_weight_floor)
        weight = masks ? 0 : a.behaviour_weight_floor;
      loss = -weight * surrogate(r.proximal);
      break;
    }
    case O::Tis:
      loss = -std::max(std::min(reference_weight(r, t, a), a.behaviour_weight_cap),
                       a.behaviour_weight_floor) *
             surrogate(r.proximal);
      break;
    case O::Cispo: {
      const double ratio = reference_ratio(frozen, r.behaviour, t, a.ratio);
      const double weight = std::max(1 - a.clip_low, std::min(1 + a.clip_high, ratio));
      loss = -weight * advantage * r.current[t];
      break;
    }
    case O::Reinforce:
      loss = -advantage * r.current[t];
      break;
  }
  if (!r.reference.empty()) {
    const double q = std::exp(r.reference[t]) / std::exp(r.current[t]);
    loss += a.kl * (q - std::log(q) - 1);
  }
  return loss;
}

inline double reference_loss(const ReferenceResponse& r,
                             const std::vector<double>& frozen,
                             const trainer::Algorithm& a) {
  double sum = 0;
  for (std::size_t t = 0; t < r.current.size(); ++t)
    sum += reference_token_loss(r, frozen, t, a);
  return sum;
}

/// Of the response's loss by each token's current log-prob: central differences.
inline std::vector<double> reference_derivatives(const ReferenceResponse& r,
                                                 const trainer::Algorithm& a) {
  constexpr double kStep = 1e-6;
  std::vector<double> out;
  ReferenceResponse moved = r;
  for (std::size_t t = 0; t < r.current.size(); ++t) {
    moved.current[t] = r.current[t] + kStep;
    const double above = reference_loss(moved, r.current, a);
    moved.current[t] = r.current[t] - kStep;
    const double below = reference_loss(moved, r.current, a);
    moved.current[t] = r.current[t];
    out.push_back((above - below) / (2 * kStep));
  }
  return out;
}

/// A ratio so close to where the surrogate bends that a finite difference steps over it.
inline bool near_a_bend(const ReferenceResponse& r, const trainer::Algorithm& a) {
  for (std::size_t t = 0; t < r.current.size(); ++t) {
    for (const auto* old : {&r.behaviour, &r.proximal}) {
      const double ratio = reference_ratio(r.current, *old, t, a.ratio);
      if (std::abs(ratio - 1 - a.clip_high) < 1e-5 || std::abs(ratio - 1 + a.clip_low) < 1e-5)
        return true;
    }
  }
  return false;
}

/// Probabilities of the tokens `top` of a whole distribution, and of all others together.
inline std::vector<double> reference_outcomes(const std::vector<double>& probabilities,
                                              const std::vector<int>& top) {
  std::vector<double> out;
  double others = 0;
  for (std::size_t token = 0; token < probabilities.size(); ++token) {
    if (std::find(top.begin(), top.end(), static_cast<int>(token)) == top.end())
      others += probabilities[token];
  }
  for (const int token : top)
    out.push_back(probabilities[static_cast<std::size_t>(token)]);
  out.push_back(others);
  return out;
}

/// KL(p || q) of two distributions; an outcome that p does not have adds nothing.
inline double reference_divergence(const std::vector<double>& p, const std::vector<double>& q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    sum += p[i] > 0 ? p[i] * std::log(p[i] / q[i]) : 0;
  return sum;
}

struct ReferenceReward {
  int group = 0;
  double reward = 0;
};

/// Advantages by definition, each from the whole list.
inline std::vector<double> reference_advantages(const std::vector<ReferenceReward>& list,
                                                const trainer::Algorithm& a) {
  using M = trainer::AdvantageMean;
  using S = trainer::AdvantageStd;
  const auto mean_of = [&](auto&& belongs) {
    double sum = 0, n = 0;
    for (std::size_t j = 0; j < list.size(); ++j) {
      if (belongs(j))
        sum += list[j].reward, n += 1;
    }
    return n > 0 ? sum / n : 0;
  };
  const auto everyone = [](std::size_t) { return true; };
  const auto group_mean = [&](std::size_t i) {
    return mean_of([&](std::size_t j) { return list[j].group == list[i].group; });
  };
  std::vector<double> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    double baseline = 0;
    if (a.advantage_mean == M::Group)
      baseline = group_mean(i);
    if (a.advantage_mean == M::Batch)
      baseline = mean_of(everyone);
    if (a.advantage_mean == M::LeaveOneOut)
      baseline = mean_of([&](std::size_t j) { return j != i && list[j].group == list[i].group; });
    double squares = 0, n = 0;
    for (std::size_t j = 0; j < list.size(); ++j) {
      const bool within = a.advantage_std == S::Group;
      if (within && list[j].group != list[i].group)
        continue;
      const bool by_group =
          within || a.advantage_mean == M::Group || a.advantage_mean == M::LeaveOneOut;
      const double d = list[j].reward - (by_group ? group_mean(j) : mean_of(everyone));
      squares += d * d, n += 1;
    }
    const double scale =
        a.advantage_std == S::None ? 1 : std::sqrt(squares / n) + a.advantage_epsilon;
    out.push_back((list[i].reward - baseline) / scale);
  }
  return out;
}

}  // namespace temper::tests
