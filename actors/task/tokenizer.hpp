// Text to token ids and back. Two tokenizers, both total: bytes (any text) and characters (a fixed
// alphabet, for the built-in task; small vocabulary, so a tiny model is fast).
#pragma once

#include "actors/task/task_config.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

using TokenId = std::int32_t;

class Tokenizer {
 public:
  /// The tokenizer a task asks for (`auto` resolved).
  static Tokenizer for_task(const TaskConfig& task);

  /// Token ids without an end mark. Error: a character outside the alphabet, named.
  Result<std::vector<TokenId>> encode(std::string_view text) const;
  /// Stops at the first end mark. Ids outside the vocabulary are skipped.
  std::string decode(const std::vector<TokenId>& tokens) const;

  TokenId pad() const { return 0; }
  /// End of response.
  TokenId end() const { return 1; }
  /// Of the first character; the others follow in the order of alphabet().
  TokenId first() const;
  /// Empty: the characters are the 256 values of a byte.
  const std::string& alphabet() const { return alphabet_; }
  std::int32_t vocabulary() const;

 private:
  explicit Tokenizer(std::string alphabet) : alphabet_(std::move(alphabet)) {}
  std::string alphabet_;  ///< Empty: bytes.
};

}  // namespace temper::actors
