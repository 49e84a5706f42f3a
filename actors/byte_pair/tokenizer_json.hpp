// Reads a tokenizer.json with a BPE model, as the library `tokenizers` writes it.
#pragma once

#include "actors/byte_pair/added_tokens.hpp"
#include "actors/byte_pair/byte_pair_model.hpp"
#include "actors/byte_pair/decoder.hpp"
#include "actors/byte_pair/normalizer.hpp"
#include "actors/byte_pair/pre_tokenizer.hpp"

namespace temper::actors {

struct TokenizerJson {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  BytePairModel model;
  Decoder decoder;
  std::vector<AddedToken> added;
};

/// Errors: InvalidInput if the JSON does not have this form; Unsupported, naming a model or setting
/// that Temper does not support.
Result<TokenizerJson> parse_tokenizer_json(std::string_view text);

/// Writes a tokenizer.json without merges: the special tokens, then one token for each of these
/// bytes.
std::string byte_level_tokenizer_json(const std::vector<std::string>& special,
                                      std::string_view bytes);

}  // namespace temper::actors
