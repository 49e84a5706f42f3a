// The algorithms, one row of parameters each; all other code is shared.
//
// Every row is critic-free: each token of a response has the advantage of the response. In every
// row, the KL to the reference (k3) is part of the loss (`algorithm.kl`), and AdamW cancels
// constant factors, so rows differ only in these columns. If a source differs from its row, the
// note of the row says so. A source is an arXiv id unless stated otherwise.
#pragma once

#include "trainer/algorithm_config.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace temper::trainer {

struct AlgorithmRow {
  AlgorithmName name = AlgorithmName::Grpo;
  Algorithm columns{};
  double overlong_share = 0;  ///< Overlong buffer, as a share of the longest response.
  std::string_view source{};
  std::string_view note{};
};

std::span<const AlgorithmRow> algorithm_table();
const AlgorithmRow& algorithm_row(AlgorithmName name);

/// The row selected by `name`, overridden by the keys of the section.
Algorithm resolve(const AlgorithmConfig& config, Tokens longest_response);

/// The section of a run of `steps` with every column set, so that its meaning does not depend on
/// `name`, nor the end of the decay on another section.
AlgorithmConfig written_out(AlgorithmConfig config, Tokens longest_response, std::uint64_t steps);

/// The table of docs/reference/algorithms.md.
std::string write_algorithm_table();

}  // namespace temper::trainer
