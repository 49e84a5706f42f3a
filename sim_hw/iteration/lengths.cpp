#include "sim_hw/iteration/lengths.hpp"

#include "core/files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace temper::sim_hw {
namespace {

/// Quantile of the standard normal, by bisection of erfc: exact enough, and short.
double normal_quantile(double p) {
  double low = -10;
  double high = 10;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

Result<std::vector<double>> read_lengths(const std::filesystem::path& file) {
  TEMPER_TRY(const std::string text, read_file(file));
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_array() || parsed.empty())
    return invalid_input(fmt::format("{}: expected a JSON array of lengths", file.string()));
  std::vector<double> lengths;
  for (const nlohmann::json& each : parsed) {
    if (!each.is_number_integer() || each.get<std::int64_t>() < 1) {
      return invalid_input(fmt::format("{}: entry {} is `{}`; expected an integer of 1 or more",
                                       file.string(),
                                       lengths.size() + 1,
                                       each.dump()));
    }
    lengths.push_back(each.get<double>());
  }
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

Result<std::vector<double>> lognormal_lengths(std::size_t count,
                                              double mean,
                                              double cap,
                                              double p99_over_median) {
  if (!(mean >= 1))
    return invalid_input(fmt::format("mean length {}: must be 1 or more", mean));
  if (mean > cap)
    return invalid_input(fmt::format("mean length {} is above the longest allowed, {}", mean, cap));
  const double sigma = std::log(std::max(1.0, p99_over_median)) / normal_quantile(0.99);
  std::vector<double> ratio(count);  // To the median.
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
  // The median that gives this mean after the cut: the mean rises with it.
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

}  // namespace temper::sim_hw
