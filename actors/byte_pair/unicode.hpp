// Unicode functions for tokenizers, based on ICU: normal form C and regular expressions over UTF-8.
#pragma once

#include "core/result.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

/// Error InvalidInput if the text is not valid UTF-8.
Status check_utf8(std::string_view text);
/// Replaces each run of invalid UTF-8 bytes with U+FFFD.
std::string to_valid_utf8(std::string_view bytes);
/// Converts to normal form C. Requires: valid UTF-8.
std::string compose(std::string_view text);

/// A compiled regular expression in the syntax of tokenizer.json, where `\s` is the property
/// White_Space. Thread-safe.
class TextPattern {
 public:
  /// Error InvalidInput if the pattern does not compile.
  static Result<TextPattern> compile(std::string_view pattern);
  TextPattern(TextPattern&&) noexcept;
  ~TextPattern();

  /// Splits a text at the boundaries of its matches and returns the matches and the text between
  /// them, in order. Requires: valid UTF-8. Error: the expression failed on the text (time or stack
  /// limit).
  Result<std::vector<std::string>> split(std::string_view text) const;

 private:
  struct Compiled;
  explicit TextPattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace temper::actors
