// Byte-level BPE tokenizer read from the tokenizer.json of a model folder, as used by Llama 3, Qwen
// and most newer open models. Equivalent to encode(text, add_special_tokens=False) and
// decode(ids, skip_special_tokens=True) of the library `tokenizers`; a test compares both.
#pragma once

#include "actors/byte_pair/tokenizer_json.hpp"

#include <filesystem>
#include <span>

namespace temper::actors {

class BytePairTokenizer {
 public:
  /// Errors name the file and the unsupported setting.
  static Result<BytePairTokenizer> open(const std::filesystem::path& tokenizer_json);
  static Result<BytePairTokenizer> parse(std::string_view text);

  /// Added tokens (such as those of a chat template) are recognized anywhere in the text. Errors:
  /// InvalidInput if the text is not UTF-8 or has a byte without a token.
  Result<std::vector<std::int32_t>> encode(std::string_view text) const;
  /// Skips special tokens and unknown ids. Invalid UTF-8 (a truncated character) becomes U+FFFD.
  std::string decode(std::span<const std::int32_t> tokens) const;
  /// All ids are below this number.
  std::int32_t size() const { return static_cast<std::int32_t>(file_.bytes.size()); }

 private:
  explicit BytePairTokenizer(TokenizerJson file);
  const AddedToken* added_at(std::string_view text) const;
  Status encode_plain(std::string_view text, std::vector<std::int32_t>& out) const;
  Status encode_piece(const std::string& piece, std::vector<std::int32_t>& out) const;

  TokenizerJson file_;
  std::array<std::vector<std::size_t>, 256> added_by_byte_;  ///< Indices into file_.added by first
                                                             ///< byte, longest token first.
  std::vector<bool> special_;                                ///< Indexed by token id.
};

}  // namespace temper::actors
