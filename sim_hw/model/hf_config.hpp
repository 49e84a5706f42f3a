// Reads a model's dimensions from a Hugging Face config.json. Supports the families whose cost the
// planner models: llama, mistral, mixtral, qwen2, qwen2_moe, qwen3, qwen3_moe, deepseek_v2,
// deepseek_v3 and kimi_k2. Errors name another family, and features that change the cost but are
// not modeled: sliding windows, and expert layers interleaved with dense ones. Quantized weights
// are planned as bf16. Pure.
#pragma once

#include "core/result.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <filesystem>
#include <string_view>

namespace temper::sim_hw {

/// `name` is used if the file has no name.
Result<ModelSpec> model_of_config(std::string_view json, const std::string& name);

/// `path` is a config.json, or its folder, whose name becomes the model's.
Result<ModelSpec> model_of_config_file(const std::filesystem::path& path);

}  // namespace temper::sim_hw
