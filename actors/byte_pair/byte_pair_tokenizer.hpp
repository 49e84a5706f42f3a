// BPE tokenizer read from the tokenizer.json of a model folder: byte-level, as used by Llama 3,
// Qwen and most newer open models, or converted from SentencePiece, as used by Llama 2, Mistral and
// Gemma. Equivalent to encode(text, add_special_tokens=False) and decode(ids,
// skip_special_tokens=True) of the library `tokenizers`; a test compares both.
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
  /// InvalidInput if the text is not UTF-8 or has a character without a token.
  Result<std::vector<std::int32_t>> encode(std::string_view text) const;
  /// Skips special tokens and unknown ids. Invalid UTF-8 (a truncated character) becomes U+FFFD.
  std::string decode(std::span<const std::int32_t> tokens) const;
  /// All ids are below this number.
  std::int32_t size() const { return static_cast<std::int32_t>(texts_.size()); }
  /// True if tokens are made of bytes, false if they are made of characters, as of SentencePiece.
  bool byte_level() const { return decoder_.from_bytes(); }

 private:
  explicit BytePairTokenizer(TokenizerJson file);
  void set_text(std::int32_t id, const std::string& text);
  Status encode_normalized(std::string_view text,
                           TextPlace place,
                           std::vector<std::int32_t>& out) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  BytePairModel model_;
  Decoder decoder_;
  AddedTokens added_;               ///< Found in the text.
  AddedTokens added_normalized_;    ///< Found in the normalized text.
  std::vector<std::string> texts_;  ///< By token id; empty if there is no such token.
  std::vector<bool> special_;       ///< By token id.
};

}  // namespace temper::actors
