// A tokenizer.json as a library for tokenizers writes it, where it is byte-level BPE: the
// vocabulary and merges in terms of bytes.
#pragma once

#include "actors/byte_pair/merges.hpp"
#include "actors/byte_pair/pre_tokenizer.hpp"
#include "core/result.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace temper::actors {

/// A token that stands for itself wherever its text occurs.
struct AddedToken {
  std::int32_t id = 0;
  std::string text;
  bool special = false;  ///< Marks structure: not a part of a decoded text.
};

struct TokenizerJson {
  PreTokenizer pre_tokenizer;
  Merges merges;
  std::vector<AddedToken> added;
  std::vector<std::string>
      bytes;  ///< By id, what a token decodes to; empty where there is no token.
  std::unordered_map<std::string, std::int32_t> ids;  ///< By those bytes, without added tokens.
  std::array<std::int32_t, 256> byte_ids{};           ///< Of a single byte; -1: no token.
  bool whole_pieces_first = false;  ///< A piece that is a token is not made by merges.
};

/// Errors: not JSON of this form; a model or a setting that we do not compute, by its name.
Result<TokenizerJson> parse_tokenizer_json(std::string_view text);

/// A tokenizer.json without merges: the special tokens, then a token for each of these bytes.
std::string byte_level_tokenizer_json(const std::vector<std::string>& special,
                                      std::string_view bytes);

}  // namespace temper::actors
