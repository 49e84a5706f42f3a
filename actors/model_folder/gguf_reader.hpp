// Converts a GGUF file to a Hugging Face model folder with weights in float32, or in bfloat16 if
// the file has no others.
#pragma once

#include "actors/model_folder/gguf_file.hpp"
#include "actors/model_folder/layout.hpp"

#include <filesystem>

namespace temper::actors {

/// Raised when the same file would be converted to another folder.
inline constexpr int kGgufConversion = 1;

/// The configuration that the metadata describes. Error: names a key that is missing, invalid or
/// not supported.
Result<ModelConfig> read_gguf_config(const GgufFile& file);

/// Writes config.json, generation_config.json, model.safetensors, tokenizer.json and
/// tokenizer_config.json; config.json is written last. For the architecture `llama`, the rows of
/// queries and keys return to the order of transformers (write_gguf()). Holds one tensor in memory
/// at a time. Errors name the file and the key or tensor; the folder may then be incomplete.
/// Requires: `folder` exists.
Status convert_gguf(const std::filesystem::path& file, const std::filesystem::path& folder);

}  // namespace temper::actors
