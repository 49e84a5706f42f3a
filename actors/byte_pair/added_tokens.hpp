// Finds added tokens, such as those of a chat template, in a text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

/// A token that is matched literally anywhere in a text.
struct AddedToken {
  std::int32_t id = 0;
  std::string text;
  bool special = false;     ///< Structural token, omitted from decoded text.
  bool normalized = false;  ///< Matched in the normalized text.
  bool lstrip = false;      ///< Includes the white space before it.
  bool rstrip = false;      ///< Includes the white space after it.
};

/// An added token, or the text between two of them.
struct TextPart {
  std::string_view text;
  std::optional<std::int32_t> token;
};

class AddedTokens {
 public:
  /// Tokens without a text match nowhere.
  explicit AddedTokens(std::vector<AddedToken> tokens);
  /// Splits a text at its added tokens, of several at a place the longest. Parts are views of the
  /// text. Requires: valid UTF-8.
  std::vector<TextPart> split(std::string_view text) const;

 private:
  const AddedToken* token_at(std::string_view text) const;

  std::array<std::vector<AddedToken>, 256> by_first_byte_;  ///< Longest text first, then
                                                            ///< special tokens.
};

}  // namespace temper::actors
