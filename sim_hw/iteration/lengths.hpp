// Lengths of responses: a list from a file, or a distribution cut into equal shares of probability,
// so that the same question has the same answer without a random draw. Ascending. Values only.
#pragma once

#include "core/result.hpp"

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

/// A JSON array of integers, 1 or more each.
Result<std::vector<double>> read_lengths(const std::filesystem::path& file);

/// Quantiles (i + 1/2) / count of a lognormal with this mean and ratio of its 99th percentile to
/// its median, each a whole number cut off at `cap`. The mean is that of the list after the cut, as
/// near as whole numbers come. Errors: a mean below 1 or above the cap.
Result<std::vector<double>> lognormal_lengths(std::size_t count,
                                              double mean,
                                              double cap,
                                              double p99_over_median);

}  // namespace temper::sim_hw
