// The names of architectures, tensors and keys in GGUF files.
#pragma once

#include "actors/model/model_config.hpp"
#include "core/result.hpp"

#include <string>
#include <string_view>

namespace temper::actors {

/// The value of `general.architecture`.
std::string_view gguf_architecture(Architecture architecture);

/// The name in llama.cpp of a tensor with this name in a model folder. Error Corrupt: it has none.
Result<std::string> gguf_name_of(std::string_view stored);

/// Key of a flag: the names of the tokens are placeholders, because the writer had only token ids.
inline constexpr std::string_view kGgufPlaceholderTokens = "temper.placeholder_tokens";

}  // namespace temper::actors
