// Reads a tokenizer.json with a byte-level BPE model, as the library `tokenizers` writes it, and
// expresses its vocabulary and merges in bytes.
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

/// A token that is matched literally anywhere in a text.
struct AddedToken {
  std::int32_t id = 0;
  std::string text;
  bool special = false;  ///< Structural token, omitted from decoded text.
};

struct TokenizerJson {
  PreTokenizer pre_tokenizer;
  Merges merges;
  std::vector<AddedToken> added;
  std::vector<std::string> bytes;  ///< Decoded bytes by token id; empty if there is no such token.
  std::unordered_map<std::string, std::int32_t> ids;  ///< Token ids by their bytes, without added
                                                      ///< tokens.
  std::array<std::int32_t, 256> byte_ids{};           ///< Token ids of single bytes; -1 if there is
                                                      ///< none.
  bool whole_pieces_first = false;  ///< A piece that is itself a token is not split
                                    ///< (`ignore_merges`).
};

/// Errors: InvalidInput if the JSON does not have this form; Unsupported, naming a model or setting
/// that Temper does not support.
Result<TokenizerJson> parse_tokenizer_json(std::string_view text);

/// Writes a tokenizer.json without merges: the special tokens, then one token for each of these
/// bytes.
std::string byte_level_tokenizer_json(const std::vector<std::string>& special,
                                      std::string_view bytes);

}  // namespace temper::actors
