// The GGUF file format (version 3), as llama.cpp's server reads it: a model's weights in float32
// and what is said of them, in one file.
//
//   "GGUF", version, counts of tensors and of keys; keys with typed values; for each tensor its
//   name, its sizes (innermost first), type and offset; then the data, each tensor at a multiple of
//   32 bytes. Little-endian.
//
// Its tokens have names of their own (`<17>` is token 17): whoever speaks to such a server sends
// and reads token ids, and text would need the model's own tokenizer.
#pragma once

#include "core/result.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace temper::actors {

inline constexpr std::string_view kGgufFile = "model.gguf";

/// `image`: safetensors with the names of Layout::stored(); `config_json`: of the model. Rows of
/// queries and keys are put in the order in which llama.cpp turns pairs of them, where it needs
/// that (LlamaForCausalLM: i and i + h/2 of a head become neighbours). Errors: an image that is
/// damaged or lacks its embedding; a scaling of rotary positions; a configuration that does not
/// parse.
Result<std::string> write_gguf(std::span<const std::byte> image,
                               std::string_view config_json,
                               std::span<const std::string> ignore = {});

}  // namespace temper::actors
