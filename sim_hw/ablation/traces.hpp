// Recorded loads of experts and lengths of documents, as CSV with a line of names first. No
// threads.
#pragma once

#include "core/result.hpp"
#include "sim_hw/parallel/expert_balance.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace temper::sim_hw {

/// A row per step, a column per expert: tokens, or any share of them; rows are scaled to sum to 1.
/// Errors name the line: another number of columns than `experts`, a number below 0, nothing
/// routed.
Result<std::vector<ExpertLoads>> read_expert_loads(const std::string& path, std::int64_t experts);

/// A column `sample` and a column `length`: a row per document, in order of samples. Gives the sum
/// of squared lengths of each sample. Errors name the line: a sample of more than `seq` tokens.
Result<std::vector<double>> read_samples(const std::string& path, std::int64_t seq);

}  // namespace temper::sim_hw
