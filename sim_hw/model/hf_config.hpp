// A model's dimensions from the config.json that Hugging Face keeps beside its weights. Read are
// the families whose cost the planner knows: llama, mistral, mixtral, qwen2, qwen2_moe, qwen3,
// qwen3_moe, deepseek_v2, deepseek_v3 and kimi_k2. Another is refused by name, as is what would
// change the cost and is not modelled: layers with a sliding window or without experts in between.
// Quantised weights are planned as bf16. Pure.
#pragma once

#include "core/result.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <filesystem>
#include <string_view>

namespace temper::sim_hw {

/// `name` is what the model is called where the file says nothing.
Result<ModelSpec> model_of_config(std::string_view json, const std::string& name);

/// Of a config.json, or of the folder that it lies in, whose name is the model's.
Result<ModelSpec> model_of_config_file(const std::filesystem::path& path);

}  // namespace temper::sim_hw
