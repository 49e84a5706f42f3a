// Reads recorded expert loads and document lengths from CSV files with a header line. No threads.
#pragma once

#include "core/result.hpp"
#include "sim_hw/parallel/expert_balance.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace temper::sim_hw {

/// One row per step, one column per expert: tokens, or any share of them. Each row is scaled to sum
/// to 1. Errors name the line: a number of columns other than `experts`, a negative number, or a
/// row of zeros.
Result<std::vector<ExpertLoads>> read_expert_loads(const std::string& path, std::int64_t experts);

/// Columns `sample` and `length`: one row per document, in the order of samples. Returns the sum of
/// squared document lengths of each sample. Errors name the line: a sample of more than `seq`
/// tokens.
Result<std::vector<double>> read_samples(const std::string& path, std::int64_t seq);

}  // namespace temper::sim_hw
