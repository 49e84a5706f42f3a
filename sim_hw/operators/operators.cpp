#include "sim_hw/operators/operators.hpp"

#include <vector>

namespace temper::sim_hw {
namespace {

/// Inclusion probability of each expert: 1 - exp(-lambda p), with lambda such that they sum to
/// top_k: the usual approximation of drawing top_k without replacement.
std::vector<double> inclusion(std::size_t experts, double top_k, double zipf) {
  std::vector<double> popularity(experts);
  double sum = 0;
  for (std::size_t i = 0; i < experts; ++i)
    sum += popularity[i] = std::pow(static_cast<double>(i + 1), -zipf);
  for (double& p : popularity)
    p /= sum;
  double low = 0;
  double high = 1;
  const auto total = [&](double lambda) {
    double all = 0;
    for (const double p : popularity)
      all += 1 - std::exp(-lambda * p);
    return all;
  };
  while (total(high) < top_k && high < 1e12)
    high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (total(middle) < top_k ? low : high) = middle;
  }
  for (double& p : popularity)
    p = 1 - std::exp(-high * p);
  return popularity;
}

}  // namespace

Routing skewed_routing(double experts, double top_k, double tokens, double zipf) {
  if (zipf == 0 || top_k >= experts)
    return balanced_routing(experts, top_k, tokens);
  Routing out;
  for (const double pi : inclusion(static_cast<std::size_t>(experts), top_k, zipf)) {
    const double hit = 1 - std::pow(1 - pi, tokens);
    out.experts += hit;
    out.tiles += std::max(hit, tokens * pi / 128 + hit / 2);
  }
  return out;
}

}  // namespace temper::sim_hw
