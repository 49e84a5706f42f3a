// Statistics of samples, alone and in pairs. Pure functions; any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace temper {

/// Spearman's rank correlation of a[i] with b[i]: Pearson's correlation of their ranks, where equal
/// values share the mean of the ranks that they take up. Nothing for fewer than two pairs, for
/// lists of different lengths, or if either side is constant.
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

/// The middle of the values in their order; of two in the middle the larger one; 0 of none.
double median(std::vector<double> values);

struct Interval {
  double low = 0, high = 0;
};
/// Wilson's interval in which a share lies with 95 % confidence that was seen in `trials`
/// independent trials; [0, 1] of none.
Interval wilson_interval(double share, double trials);
/// Whether two shares, each seen in `trials` trials, differ with 95 % confidence (Newcombe's
/// interval of the difference, made of Wilson's).
bool differ(double a, double b, double trials);

/// The nearest multiple of 1 / parts, so that few digits are written.
double rounded(double value, double parts);

}  // namespace temper
