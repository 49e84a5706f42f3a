#include "orchestrator/metrics/run_metrics.hpp"

#include <cmath>

namespace temper::orchestrator {

std::int64_t ValueCounts::quantile(double share) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(total_)));
  std::uint64_t seen = 0;
  for (const auto& [value, count] : counts()) {
    seen += count;
    if (seen >= wanted)
      return value;
  }
  return 0;
}

std::int64_t ValueCounts::max() const {
  if (!others_.empty() && others_.rbegin()->first >= kDense)
    return others_.rbegin()->first;
  if (!dense_.empty())  // Its last value is the largest.
    return static_cast<std::int64_t>(dense_.size()) - 1;
  return others_.empty() ? 0 : others_.rbegin()->first;
}

std::map<std::int64_t, std::uint64_t> ValueCounts::counts() const {
  std::map<std::int64_t, std::uint64_t> all = others_;
  for (std::size_t value = 0; value < dense_.size(); ++value) {
    if (dense_[value] > 0)
      all.emplace(static_cast<std::int64_t>(value), dense_[value]);
  }
  return all;
}

}  // namespace temper::orchestrator
