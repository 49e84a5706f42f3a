#include "actors/policy/internal/parallel.hpp"

#include "actors/policy/internal/kernels.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace temper::actors {
namespace {

constexpr std::int64_t kPart = 1 << 18;  // Floats: 1 MiB, far more work than starting a thread.
constexpr std::int64_t kLeastRange = 1 << 14;  // Floats: some microseconds.
constexpr std::int64_t kMostRanges = 64;       // So that threads which are interrupted get fewer.

}  // namespace

void for_each_part(std::int64_t n, const std::function<void(std::int64_t, std::int64_t)>& f) {
#pragma omp parallel for schedule(static)
  for (std::int64_t begin = 0; begin < n; begin += kPart)
    f(begin, std::min(begin + kPart, n));
}

void for_each_range(std::int64_t n,
                    std::int64_t cost,
                    const std::function<void(std::int64_t, std::int64_t)>& f) {
  const std::int64_t ranges =
      std::min({n, kMostRanges, n * std::max<std::int64_t>(cost, 1) / kLeastRange});
  if (ranges < 2)
    return f(0, n);
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t i = 0; i < ranges; ++i)
    f(n * i / ranges, n * (i + 1) / ranges);
}

double sum_of_parts(std::int64_t n, const std::function<double(std::int64_t, std::int64_t)>& f) {
  std::vector<double> sums(static_cast<std::size_t>((n + kPart - 1) / kPart));
  for_each_part(n, [&](std::int64_t begin, std::int64_t end) {
    sums[static_cast<std::size_t>(begin / kPart)] = f(begin, end);
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void round_array(const float* x, Bfloat16* y, std::int64_t n) {
  for_each_part(n, [&](std::int64_t begin, std::int64_t end) {
    round_to_bfloat16(x + begin, y + begin, end - begin);
  });
}

}  // namespace temper::actors
