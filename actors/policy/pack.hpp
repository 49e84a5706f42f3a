// A batch for scoring or training: sequences laid end to end without padding, and a prompt that
// several responses share laid only once. Row = one input token. The last token of a response is
// predicted but not fed, so a response of n tokens takes n - 1 rows.
#pragma once

#include "core/units.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace temper::actors {

/// Rows [begin, begin + count), which see each other causally, after the rows of a shared prefix
/// (none for a prompt).
struct PackedSequence {
  std::int64_t prefix_begin = 0;
  std::int64_t prefix_count = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

class Pack {
 public:
  /// Requires: not empty.
  void add_prompt(std::span<const std::int32_t> tokens);
  /// A response to the prompt added last. Requires: one was added.
  void add_response(std::span<const std::int32_t> tokens);
  void clear() { *this = Pack(); }

  std::int64_t rows() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// Rows that adding these would take.
  static std::int64_t rows_of_prompt(std::span<const std::int32_t> tokens) {
    return static_cast<std::int64_t>(tokens.size());
  }
  static std::int64_t rows_of_response(std::span<const std::int32_t> tokens) {
    return tokens.empty() ? 0 : static_cast<std::int64_t>(tokens.size()) - 1;
  }

  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  const std::vector<std::int32_t>& positions() const { return positions_; }
  const std::vector<PackedSequence>& sequences() const { return sequences_; }
  /// Rows whose output is used, each once.
  const std::vector<std::int64_t>& output_rows() const { return output_rows_; }
  /// One per response token, in the order they were added: which of output_rows() predicts it, and
  /// the token.
  struct Target {
    std::int32_t output = 0;
    std::int32_t token = 0;
  };
  const std::vector<Target>& targets() const { return targets_; }

 private:
  void add_rows(std::span<const std::int32_t> tokens, std::int64_t first_position);

  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> positions_;
  std::vector<PackedSequence> sequences_;
  std::vector<std::int64_t> output_rows_;
  std::vector<Target> targets_;
  std::int64_t prompt_begin_ = 0;
  std::int64_t prompt_count_ = 0;
  std::int32_t prompt_output_ = 0;
};

}  // namespace temper::actors
