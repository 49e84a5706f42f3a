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

/// The first character of a text; empty if there is none. Requires: valid UTF-8.
std::string_view first_character(std::string_view text);
/// The length in bytes of the white space that a text begins and ends with. Requires: valid UTF-8.
std::size_t leading_space(std::string_view text);
std::size_t trailing_space(std::string_view text);

/// Which boundaries of a match split a text.
enum class TextCut { Around, Before, After };

/// A compiled regular expression in the syntax of tokenizer.json, where `\s` is the property
/// White_Space. Thread-safe.
class TextPattern {
 public:
  /// Error InvalidInput if the pattern does not compile.
  static Result<TextPattern> compile(std::string_view pattern);
  TextPattern(TextPattern&&) noexcept;
  ~TextPattern();

  /// Splits a text at its matches and returns the pieces in order; none is empty. Requires: valid
  /// UTF-8. Error: the expression failed on the text (time or stack limit).
  Result<std::vector<std::string>> split(std::string_view text, TextCut cut) const;

 private:
  struct Compiled;
  explicit TextPattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace temper::actors
