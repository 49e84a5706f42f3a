#include "core/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace temper {
namespace {

/// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return values[a] < values[b];
  });
  std::vector<double> out(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && values[order[end]] == values[order[i]])
      ++end;
    const double shared = static_cast<double>(i + 1 + end) / 2;
    for (; i < end; ++i)
      out[order[i]] = shared;
  }
  return out;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double rounded(double value, double parts) {
  return std::round(value * parts) / parts;
}

Interval wilson_interval(double share, double trials) {
  if (trials <= 0)
    return {0, 1};
  constexpr double kZ = 1.959963984540054;  // 95 %, two-sided
  const double z2 = kZ * kZ;
  const double middle = share + z2 / (2 * trials);
  const double reach = kZ * std::sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials));
  const double scale = 1 + z2 / trials;
  return {std::max(0.0, (middle - reach) / scale), std::min(1.0, (middle + reach) / scale)};
}

bool differ(double a, double b, double trials) {
  const auto [low, high] = std::minmax(a, b);
  const double down = high - wilson_interval(high, trials).low;
  const double up = wilson_interval(low, trials).high - low;
  return high - low > std::sqrt(down * down + up * up);
}

std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2 || a.size() != b.size())
    return std::nullopt;
  const std::vector<double> x = ranks(a);
  const std::vector<double> y = ranks(b);
  const double mean = static_cast<double>(x.size() + 1) / 2;
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (xx == 0 || yy == 0)
    return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

}  // namespace temper
