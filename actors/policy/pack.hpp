// A batch for scoring or training: concatenated sequences without padding. A prompt shared by
// several responses is included once. One row is one input token. The last token of a response is
// predicted but not an input, so a response of n tokens takes n - 1 rows.
#pragma once

#include "core/units.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace temper::actors {

/// Rows [begin, begin + count) with causal attention among themselves, after the rows of a shared
/// prefix (empty for a prompt).
struct PackedSequence {
  std::int64_t prefix_begin = 0;
  std::int64_t prefix_count = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

class Pack {
 public:
  /// Requires: `tokens` is not empty.
  void add_prompt(std::span<const std::int32_t> tokens);
  /// Adds a response to the last prompt. Requires: a prompt was added.
  void add_response(std::span<const std::int32_t> tokens);
  /// Adds candidates at each token of the last response: the same number for each, those of the
  /// first token first. Requires: their number is a multiple of that of the response's tokens.
  void add_candidates(std::span<const std::int32_t> tokens);
  void clear() { *this = Pack(); }

  std::int64_t rows() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// Number of rows that these tokens would take.
  static std::int64_t rows_of_prompt(std::span<const std::int32_t> tokens) {
    return static_cast<std::int64_t>(tokens.size());
  }
  static std::int64_t rows_of_response(std::span<const std::int32_t> tokens) {
    return tokens.empty() ? 0 : static_cast<std::int64_t>(tokens.size()) - 1;
  }

  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  const std::vector<std::int32_t>& positions() const { return positions_; }
  const std::vector<PackedSequence>& sequences() const { return sequences_; }
  /// Rows whose output is used, without duplicates.
  const std::vector<std::int64_t>& output_rows() const { return output_rows_; }
  /// One target per response token, in the order in which they were added: the index in
  /// output_rows() of the row that predicts it, and the token.
  struct Target {
    std::int32_t output = 0;
    std::int32_t token = 0;
  };
  const std::vector<Target>& targets() const { return targets_; }
  /// Tokens that might have been there instead, in the order in which they were added.
  const std::vector<Target>& candidates() const { return candidates_; }

 private:
  void add_rows(std::span<const std::int32_t> tokens, std::int64_t first_position);

  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> positions_;
  std::vector<PackedSequence> sequences_;
  std::vector<std::int64_t> output_rows_;
  std::vector<Target> targets_;
  std::vector<Target> candidates_;
  std::size_t response_ = 0;  ///< First target of the last response.
  std::int64_t prompt_begin_ = 0;
  std::int64_t prompt_count_ = 0;
  std::int32_t prompt_output_ = 0;
};

}  // namespace temper::actors
