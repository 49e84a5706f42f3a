#include "actors/simulation/lengths.hpp"

#include "core/check.hpp"
#include "core/hash.hpp"
#include "core/portable_math.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::actors {
namespace {

std::uint64_t mix(std::uint64_t z) {  // splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// Uniform in (0, 1).
double uniform(std::uint64_t bits) {
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1.0p-52;
}

std::int64_t whole_length(double length, std::int64_t cap) {
  if (!(length < static_cast<double>(cap)))
    return cap;
  return std::max<std::int64_t>(1, std::llround(length));
}

/// The median for which round(median exp(sigma z)), limited by `cap`, has this mean.
double solve_median(double mean, double sigma, std::int64_t cap) {
  constexpr int kPoints = 513;  // z from -8 to 8
  std::array<double, kPoints> ratio;
  std::array<double, kPoints> weight;
  double total = 0;
  for (std::size_t i = 0; i < kPoints; ++i) {
    const double z = (static_cast<double>(i) - 256) / 32;
    ratio[i] = portable_exp(sigma * z);
    weight[i] = portable_exp(-z * z / 2);
    total += weight[i];
  }
  double low = 0;
  double high = 1;
  const auto mean_of = [&](double median) {
    double sum = 0;
    for (std::size_t i = 0; i < kPoints; ++i) {
      // Neglects rounding, whose average effect is zero from 1 upward.
      sum += weight[i] * std::clamp(median * ratio[i], 1.0, static_cast<double>(cap));
    }
    return sum / total;
  };
  while (mean_of(high) < mean && high < 64 * static_cast<double>(cap))
    high *= 2;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (mean_of(middle) < mean ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

Status check_lengths(const LengthConfig& c) {
  if (c.cap.count() < 1)
    return invalid_input(fmt::format("lengths: cap: expected >= 1, found {}", c.cap.count()));
  if (c.kind == LengthKind::Constant || c.kind == LengthKind::Lognormal) {
    if (!(c.mean >= 1 && c.mean <= static_cast<double>(c.cap.count())))
      return invalid_input(fmt::format(
          "lengths: mean: expected 1 to the cap ({}), found {}", c.cap.count(), c.mean));
    if (c.kind == LengthKind::Lognormal && !(c.p99_over_median >= 1 && c.p99_over_median <= 1e6))
      return invalid_input(
          fmt::format("lengths: p99_over_median: expected 1 to 1e6, found {}", c.p99_over_median));
  }
  if (c.kind == LengthKind::Histogram) {
    double sum = 0;
    for (const double w : c.weights) {
      if (!(w >= 0 && w <= 1e300))
        return invalid_input(fmt::format("lengths: weights: expected numbers >= 0, found {}", w));
      sum += w;
    }
    if (!(sum > 0 && sum <= 1e300) || c.width.count() < 1)
      return invalid_input("lengths: a histogram needs at least one weight > 0 and a width >= 1");
  }
  if (c.kind == LengthKind::Trace) {
    if (c.lengths.empty())
      return invalid_input("lengths: the trace is empty");
    if (*std::min_element(c.lengths.begin(), c.lengths.end()) < 1)
      return invalid_input("lengths: expected trace entries >= 1, found a smaller one");
  }
  return {};
}

Lengths::Lengths(const LengthConfig& config, std::uint64_t seed, std::string_view stream)
    : kind_(config.kind), cap_(config.cap.count()), key_(hash64(stream, seed)) {
  TEMPER_CHECK(check_lengths(config), "check_lengths() must succeed first");
  switch (kind_) {
    case LengthKind::Constant:
      constant_ = whole_length(config.mean, cap_);
      break;
    case LengthKind::Lognormal:
      sigma_ = portable_log(config.p99_over_median) / kNormalQuantile99;
      median_ = solve_median(config.mean, sigma_, cap_);
      of_family_ = std::sqrt(config.sibling_correlation);
      of_own_ = std::sqrt(1 - config.sibling_correlation);
      break;
    case LengthKind::Histogram: {
      double sum = 0;
      for (const double w : config.weights)
        cumulative_.push_back(sum += w);
      for (double& c : cumulative_)
        c /= sum;
      width_ = config.width.count();
      break;
    }
    case LengthKind::Trace:
      trace_ = config.lengths;
      break;
  }
}

Tokens Lengths::of(std::uint64_t index, std::uint64_t family) const {
  const std::uint64_t bits = mix(key_ + (index + 1) * 0x9e3779b97f4a7c15ULL);
  switch (kind_) {
    case LengthKind::Constant:
      break;
    case LengthKind::Lognormal: {
      double z = normal_quantile(uniform(bits));
      if (of_family_ > 0) {
        const std::uint64_t shared = mix(~key_ + (family + 1) * 0x9e3779b97f4a7c15ULL);
        z = of_own_ * z + of_family_ * normal_quantile(uniform(shared));
      }
      return Tokens(whole_length(median_ * portable_exp(sigma_ * z), cap_));
    }
    case LengthKind::Histogram: {
      const auto bin = std::upper_bound(cumulative_.begin(), cumulative_.end(), uniform(bits));
      const auto before = std::min<std::ptrdiff_t>(
          bin - cumulative_.begin(), static_cast<std::ptrdiff_t>(cumulative_.size()) - 1);
      const double inside = uniform(mix(bits + 0x9e3779b97f4a7c15ULL));
      const auto offset = static_cast<std::int64_t>(inside * static_cast<double>(width_));
      return Tokens(std::min(cap_, before * width_ + 1 + offset));
    }
    case LengthKind::Trace:
      return Tokens(
          std::min<std::int64_t>(cap_, trace_[static_cast<std::size_t>(index % trace_.size())]));
  }
  return Tokens(constant_);
}

sim_hw::RolloutLengths drawn_lengths(const LengthConfig& prompt, const LengthConfig& response) {
  constexpr std::uint64_t kDrawn = 4096;  // The mean context is then within some percent.
  const Lengths prompts(prompt, 0, kPromptLengths);
  const Lengths responses(response, 0, kResponseLengths);
  double sum = 0;
  std::vector<double> drawn;
  drawn.reserve(kDrawn);
  for (std::uint64_t i = 0; i < kDrawn; ++i) {
    sum += static_cast<double>(prompts.of(i).count());
    drawn.push_back(static_cast<double>(responses.of(i).count()));
  }
  return sim_hw::rollout_lengths(sum / static_cast<double>(kDrawn), drawn);
}

}  // namespace temper::actors
