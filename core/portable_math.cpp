#include "core/portable_math.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace temper {
namespace {

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

using Polynomial = std::array<double, 8>;
double value(const Polynomial& p, double x) {
  double sum = 0;
  for (auto c = p.rbegin(); c != p.rend(); ++c)
    sum = sum * x + *c;
  return sum;
}

}  // namespace

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

double portable_exp(double x) {
  const auto k = static_cast<std::int64_t>(x * std::numbers::log2e + (x < 0 ? -0.5 : 0.5));
  const double r = x - static_cast<double>(k) * std::numbers::ln2;
  double sum = 0;
  for (const double c : kInverseFactorials)
    sum = sum * r + c;
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

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

}  // namespace temper
