// The algorithms, one row each: what an algorithm is beyond the machinery they share is data.
//
// Every row is critic-free: each token of a response has the response's advantage. The KL to the
// reference is k3 in the loss (`algorithm.kl`) in every row, and AdamW takes what remains of
// constant factors, so rows differ in these columns alone. Where a source differs from what its
// row says, the row's note says so. A source is an arXiv id unless it says otherwise.
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

/// The row of the section's name, with the section's keys over it.
Algorithm resolve(const AlgorithmConfig& config, Tokens longest_response);

/// The section with every column written out: it means the same under any name.
AlgorithmConfig written_out(AlgorithmConfig config, Tokens longest_response);

/// The table of docs/algorithms.md.
std::string write_algorithm_table();

}  // namespace temper::trainer
