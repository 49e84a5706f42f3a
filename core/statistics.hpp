// Statistics of paired samples. Pure functions; any thread.
#pragma once

#include <optional>
#include <span>

namespace temper {

/// Spearman's rank correlation of a[i] with b[i]: Pearson's correlation of their ranks, where equal
/// values share the mean of the ranks that they take up. Nothing for fewer than two pairs, for
/// lists of different lengths, or if either side is constant.
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace temper
