// Statistics of samples and of pairs of samples. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace temper {

/// Spearman's rank correlation of a[i] with b[i]: Pearson's correlation of their ranks, where equal
/// values share the mean of their ranks. Empty for fewer than two pairs, for lists of different
/// lengths, and if one list is constant.
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

/// The median; the larger of the two middle values for an even count; 0 for no values.
double median(std::vector<double> values);

struct Interval {
  double low = 0, high = 0;
};
/// Wilson's 95 % confidence interval for a share observed in `trials` independent trials; [0, 1]
/// for no trials.
Interval wilson_interval(double share, double trials);
/// True if two shares, each observed in `trials` trials, differ with 95 % confidence (Newcombe's
/// interval of the difference, built from Wilson's).
bool differ(double a, double b, double trials);

/// The nearest multiple of 1 / parts, so that the value prints with few digits.
double rounded(double value, double parts);

}  // namespace temper
