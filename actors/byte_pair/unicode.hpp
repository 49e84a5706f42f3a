// What a tokenizer needs of Unicode, from ICU: normal form C and regular expressions, over UTF-8.
#pragma once

#include "core/result.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

/// Error: the text is not UTF-8.
Status check_utf8(std::string_view text);
/// Each run of bytes that is not UTF-8 becomes U+FFFD.
std::string to_valid_utf8(std::string_view bytes);
/// Normal form C. Requires: UTF-8.
std::string compose(std::string_view text);

/// A compiled regular expression, in the syntax that tokenizer.json uses: `\s` is the property
/// White_Space. May be used from several threads.
class TextPattern {
 public:
  /// Error: it does not compile.
  static Result<TextPattern> compile(std::string_view pattern);
  TextPattern(TextPattern&&) noexcept;
  ~TextPattern();

  /// Cuts a text at the borders of its matches: matches and what is between them, in order.
  /// Requires: UTF-8. Error: the expression gives up on the text.
  Result<std::vector<std::string>> split(std::string_view text) const;

 private:
  struct Compiled;
  explicit TextPattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace temper::actors
