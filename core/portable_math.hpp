// Exponential, logarithm and normal quantile with bit-identical results on every machine: they use
// only additions, multiplications, divisions and square roots, compiled without contraction. The
// last bit of the C library's functions differs between libraries, which can change a rounded
// length by one token. Pure functions.
#pragma once

namespace temper {

/// Requires: x > 0, not subnormal.
double portable_log(double x);
/// Requires: |x| < 700.
double portable_exp(double x);

/// Quantile of the standard normal distribution: algorithm AS 241 (Wichura 1988), PPND16, accurate
/// to 16 digits. Requires: 0 < p < 1.
double normal_quantile(double p);
/// normal_quantile(0.99).
inline constexpr double kNormalQuantile99 = 2.3263478740408408;

}  // namespace temper
