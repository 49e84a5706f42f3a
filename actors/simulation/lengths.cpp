#include "actors/simulation/lengths.hpp"

#include "core/check.hpp"
#include "core/hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

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

/// Requires: x > 0, not subnormal.
double portable_log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > std::numbers::sqrt2) {
    m /= 2;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  double sum = 0;
  for (int n = 23; n >= 1; n -= 2)
    sum = sum * (s * s) + 1.0 / n;
  return 2 * s * sum + static_cast<double>(exponent) * std::numbers::ln2;
}

/// 1 / n! from n = 14 down to 0.
constexpr auto kInverseFactorials = [] {
  std::array<double, 15> out{};
  double factorial = 1;
  for (std::size_t n = 0; n < out.size(); ++n) {
    factorial *= n == 0 ? 1 : static_cast<double>(n);
    out[out.size() - 1 - n] = 1 / factorial;
  }
  return out;
}();

/// Requires: |x| < 700.
double portable_exp(double x) {
  const auto k = static_cast<std::int64_t>(x * std::numbers::log2e + (x < 0 ? -0.5 : 0.5));
  const double r = x - static_cast<double>(k) * std::numbers::ln2;
  double sum = 0;
  for (const double c : kInverseFactorials)
    sum = sum * r + c;
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

using Polynomial = std::array<double, 8>;
double value(const Polynomial& p, double x) {
  double sum = 0;
  for (auto c = p.rbegin(); c != p.rend(); ++c)
    sum = sum * x + *c;
  return sum;
}

/// Of the standard normal: algorithm AS 241 (Wichura 1988), PPND16.
double normal_quantile(double p) {
  constexpr Polynomial kA{3.3871328727963666080e0,
                          1.3314166789178437745e+2,
                          1.9715909503065514427e+3,
                          1.3731693765509461125e+4,
                          4.5921953931549871457e+4,
                          6.7265770927008700853e+4,
                          3.3430575583588128105e+4,
                          2.5090809287301226727e+3};
  constexpr Polynomial kB{1,
                          4.2313330701600911252e+1,
                          6.8718700749205790830e+2,
                          5.3941960214247511077e+3,
                          2.1213794301586595867e+4,
                          3.9307895800092710610e+4,
                          2.8729085735721942674e+4,
                          5.2264952788528545610e+3};
  constexpr Polynomial kC{1.42343711074968357734e0,
                          4.63033784615654529590e0,
                          5.76949722146069140550e0,
                          3.64784832476320460504e0,
                          1.27045825245236838258e0,
                          2.41780725177450611770e-1,
                          2.27238449892691845833e-2,
                          7.74545014278341407640e-4};
  constexpr Polynomial kD{1,
                          2.05319162663775882187e0,
                          1.67638483018380384940e0,
                          6.89767334985100004550e-1,
                          1.48103976427480074590e-1,
                          1.51986665636164571966e-2,
                          5.47593808499534494600e-4,
                          1.05075007164441684324e-9};
  constexpr Polynomial kE{6.65790464350110377720e0,
                          5.46378491116411436990e0,
                          1.78482653991729133580e0,
                          2.96560571828504891230e-1,
                          2.65321895265761230930e-2,
                          1.24266094738807843860e-3,
                          2.71155556874348757815e-5,
                          2.01033439929228813265e-7};
  constexpr Polynomial kF{1,
                          5.99832206555887937690e-1,
                          1.36929880922735805310e-1,
                          1.48753612908506148525e-2,
                          7.86869131145613259100e-4,
                          1.84631831751005468180e-5,
                          1.42151175831644588870e-7,
                          2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * value(kA, r) / value(kB, r);
  }
  const double r = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
  const double z =
      r <= 5 ? value(kC, r - 1.6) / value(kD, r - 1.6) : value(kE, r - 5) / value(kF, r - 5);
  return q < 0 ? -z : z;
}

constexpr double kQuantile99 = 2.3263478740408408;

std::int64_t rounded(double length, std::int64_t cap) {
  if (!(length < static_cast<double>(cap)))
    return cap;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(length + 0.5));
}

/// The median with which round(median exp(sigma z)), cut off at `cap`, has this mean.
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
      // As if rounding moved nothing on average, which holds from 1 upwards.
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
    return invalid_input(fmt::format("lengths: cap {}: must be 1 or more", c.cap.count()));
  if (c.kind == LengthKind::Constant || c.kind == LengthKind::Lognormal) {
    if (!(c.mean >= 1 && c.mean <= static_cast<double>(c.cap.count())))
      return invalid_input(
          fmt::format("lengths: mean {}: must be from 1 to the cap, {}", c.mean, c.cap.count()));
    if (c.kind == LengthKind::Lognormal && !(c.p99_over_median >= 1 && c.p99_over_median <= 1e6))
      return invalid_input(
          fmt::format("lengths: p99_over_median {}: must be 1 to 1e6", c.p99_over_median));
  }
  if (c.kind == LengthKind::Histogram) {
    double sum = 0;
    for (const double w : c.weights) {
      if (!(w >= 0 && w <= 1e300))
        return invalid_input(fmt::format("lengths: weight {}: must be 0 or more", w));
      sum += w;
    }
    if (!(sum > 0 && sum <= 1e300) || c.width.count() < 1)
      return invalid_input("lengths: a histogram needs a weight above 0 and a width of 1 or more");
  }
  if (c.kind == LengthKind::Trace) {
    if (c.lengths.empty())
      return invalid_input("lengths: the trace is empty");
    if (*std::min_element(c.lengths.begin(), c.lengths.end()) < 1)
      return invalid_input("lengths: an entry of the trace is below 1");
  }
  return {};
}

Lengths::Lengths(const LengthConfig& config, std::uint64_t seed, std::string_view stream)
    : kind_(config.kind), cap_(config.cap.count()), key_(hash64(stream, seed)) {
  TEMPER_CHECK(check_lengths(config), "lengths are checked before they are drawn");
  switch (kind_) {
    case LengthKind::Constant:
      constant_ = rounded(config.mean, cap_);
      break;
    case LengthKind::Lognormal:
      sigma_ = portable_log(config.p99_over_median) / kQuantile99;
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
      return Tokens(rounded(median_ * portable_exp(sigma_ * z), cap_));
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

}  // namespace temper::actors
