// Writes the GGUF file format (version 3) for llama.cpp's server: a model's float32 weights and
// metadata in one file.
//
//   "GGUF", version, number of tensors, number of keys; keys with typed values; for each tensor its
//   name, sizes (innermost first), type and offset; then the data, each tensor at a multiple of 32
//   bytes. Little-endian.
//
// Tokens get placeholder names (`<17>` is token 17): clients of such a server exchange token ids
// only; text would need the model's own tokenizer.
#pragma once

#include "core/result.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace temper::actors {

inline constexpr std::string_view kGgufFile = "model.gguf";

/// `image`: safetensors with the names of Layout::stored(); `config_json`: that of the model. For
/// LlamaForCausalLM, rows of queries and keys are reordered for llama.cpp's rotary embedding: rows
/// i and i + h/2 of a head become adjacent. Errors: Corrupt for a damaged image or one without
/// embedding; Unsupported for rope scaling; InvalidInput for an invalid configuration.
Result<std::string> write_gguf(std::span<const std::byte> image,
                               std::string_view config_json,
                               std::span<const std::string> ignore = {});

}  // namespace temper::actors
