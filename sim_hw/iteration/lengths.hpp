// Response lengths in tokens, ascending: read from a file, or the quantiles of a distribution, and
// what follows from them. Quantiles need no random draw, so equal questions have equal answers.
// Values only.
#pragma once

#include "core/result.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

/// Reads a JSON array of integers of 1 or more.
Result<std::vector<double>> read_lengths(const std::filesystem::path& file);

/// Quantiles (i + 1/2) / count of a lognormal with this mean and this ratio of its 99th percentile
/// to its median, rounded to whole tokens and capped at `cap`. The mean is that of the list after
/// the cap, as closely as whole numbers allow. Errors: a mean below 1 or above the cap.
Result<std::vector<double>> lognormal_lengths(std::size_t count,
                                              double mean,
                                              double cap,
                                              double p99_over_median);

/// Lengths of one response, in tokens.
struct RolloutLengths {
  double prompt = 0;
  double response = 0;  ///< Mean.
  double longest = 0;   ///< Longest prompt and response together.
  double context = 0;   ///< Mean over the time that responses run.
  double spread = 0;    ///< Standard deviation over the time that responses run.
};
/// Requires: at least one response of 1 token or more.
RolloutLengths rollout_lengths(double prompt, std::span<const double> responses);

}  // namespace temper::sim_hw
