// Text to token ids and back, as the tokenizer.json of a model folder says. Only byte-level BPE,
// which Llama 3, Qwen and most open models since have. Gives what the library that wrote the file
// gives without special tokens added: encode(text, add_special_tokens=False) and
// decode(ids, skip_special_tokens=True); a test holds both to it.
#pragma once

#include "actors/byte_pair/tokenizer_json.hpp"

#include <filesystem>
#include <span>

namespace temper::actors {

class BytePairTokenizer {
 public:
  /// Errors name the file, and what in it we do not compute.
  static Result<BytePairTokenizer> open(const std::filesystem::path& tokenizer_json);
  static Result<BytePairTokenizer> parse(std::string_view text);

  /// Added tokens (such as those of a chat template) become their ids wherever they stand in the
  /// text. Errors: not UTF-8; a byte that is no token.
  Result<std::vector<std::int32_t>> encode(std::string_view text) const;
  /// Without special tokens and without ids that are no tokens. Bytes that are not UTF-8 (a
  /// character cut in two) become U+FFFD.
  std::string decode(std::span<const std::int32_t> tokens) const;
  /// All ids are below.
  std::int32_t size() const { return static_cast<std::int32_t>(file_.bytes.size()); }

 private:
  explicit BytePairTokenizer(TokenizerJson file);
  const AddedToken* added_at(std::string_view text) const;
  Status encode_plain(std::string_view text, std::vector<std::int32_t>& out) const;
  Status encode_piece(const std::string& piece, std::vector<std::int32_t>& out) const;

  TokenizerJson file_;
  std::array<std::vector<std::size_t>, 256> added_by_byte_;  ///< Of file_.added, the longest first.
  std::vector<bool> special_;                                ///< By id.
};

}  // namespace temper::actors
