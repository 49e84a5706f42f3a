#include "sim_hw/iteration/lengths.hpp"

#include "core/counts_file.hpp"
#include "core/portable_math.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::sim_hw {

Result<std::vector<double>> read_lengths(const std::filesystem::path& file) {
  TEMPER_TRY(const std::vector<std::int64_t> counts, read_counts(file, "lengths"));
  std::vector<double> lengths(counts.begin(), counts.end());
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

Result<std::vector<double>> lognormal_lengths(std::size_t count,
                                              double mean,
                                              double cap,
                                              double p99_over_median) {
  if (!(mean >= 1))
    return invalid_input(
        fmt::format("mean response length: expected 1 token or more, found {}", mean));
  if (mean > cap)
    return invalid_input(
        fmt::format("mean response length: found {}, above the cap of {} tokens", mean, cap));
  const double sigma = std::log(std::max(1.0, p99_over_median)) / kNormalQuantile99;
  std::vector<double> ratio(count);  // Relative to the median.
  for (std::size_t i = 0; i < count; ++i) {
    const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    ratio[i] = std::exp(sigma * normal_quantile(p));
  }
  const auto list = [&](double median) {
    std::vector<double> out(count);
    for (std::size_t i = 0; i < count; ++i)
      out[i] = std::clamp(std::round(median * ratio[i]), 1.0, cap);
    return out;
  };
  // Find the median that gives this mean after the cap; the mean rises with the median.
  double low = 0;
  double high = 2 * cap * std::exp(3 * sigma);
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const double length : list(middle))
      sum += length;
    (sum / static_cast<double>(count) < mean ? low : high) = middle;
  }
  return list((low + high) / 2);
}

RolloutLengths rollout_lengths(double prompt, std::span<const double> responses) {
  double count = 0, first = 0, second = 0, third = 0;
  RolloutLengths out;
  for (const double r : responses) {
    count += 1;
    first += r;
    second += r * r;
    third += r * r * r;
    out.longest = std::max(out.longest, prompt + r);
  }
  out.prompt = prompt;
  out.response = first / count;
  // A running response has generated x of its tokens with density P(r > x) / E[r].
  const double made = second / (2 * first);
  out.context = prompt + made;
  out.spread = std::sqrt(std::max(0.0, third / (3 * first) - made * made));
  return out;
}

}  // namespace temper::sim_hw
