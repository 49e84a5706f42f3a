// Exponential, logarithm and quantiles of the standard normal with the same bits on every machine:
// additions, multiplications, divisions and square roots alone, compiled without contraction. The
// library's own differ in the last bit from one C library to the next, and a length rounded from
// them by a token. Pure functions.
#pragma once

namespace temper {

/// Requires: x > 0, not subnormal.
double portable_log(double x);
/// Requires: |x| < 700.
double portable_exp(double x);

/// Quantile of the standard normal: algorithm AS 241 (Wichura 1988), PPND16, good to 16 digits.
/// Requires: 0 < p < 1.
double normal_quantile(double p);
/// normal_quantile(0.99).
inline constexpr double kNormalQuantile99 = 2.3263478740408408;

}  // namespace temper
