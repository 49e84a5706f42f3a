// Converts the tokenizer in the metadata of a GGUF file to the files of a model folder.
#pragma once

#include "actors/model_folder/gguf_file.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace temper::actors {

struct GgufTokenizer {
  /// tokenizer.json and tokenizer_config.json, by name; empty if the file has no tokenizer, or one
  /// with placeholder tokens (write_gguf()).
  std::map<std::string, std::string> files;
  std::vector<std::int32_t> end_tokens;  ///< eos, then eot and eom if they differ.
};

/// Supports byte-level BPE (`gpt2`) with the pre-tokenizers gpt-2, smollm, llama-bpe and qwen2, and
/// SentencePiece BPE (`llama`). Errors: Unsupported names another model, pre-tokenizer or
/// normalization, or scores that are not those of BPE; Corrupt names the key.
Result<GgufTokenizer> read_gguf_tokenizer(const GgufFile& file);

}  // namespace temper::actors
