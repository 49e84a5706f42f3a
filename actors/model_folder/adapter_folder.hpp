// The folder of an adapter as peft reads and writes it: adapter_config.json and
// adapter_model.safetensors.
#pragma once

#include "actors/model_folder/adapter_layout.hpp"
#include "core/result.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

inline constexpr std::string_view kAdapterFile = "adapter_model.safetensors";
inline constexpr std::string_view kAdapterConfigFile = "adapter_config.json";
/// In the base of a run: the adapter from which training starts, if the run has been given one.
inline constexpr std::string_view kFirstAdapterFolder = "adapter";

/// Whether a folder has an adapter_config.json.
bool is_adapter_folder(const std::filesystem::path& folder);

/// adapter_config.json. `base`: folder or name of the base model.
std::string adapter_config_json(const LoraConfig& lora, const std::string& base);

struct AdapterConfigJson {
  LoraConfig lora;
  std::string base;  ///< Folder or name of the base model; may be empty.
};
/// Errors name the key: Corrupt; InvalidInput for settings that change what an adapter computes and
/// that Temper does not know.
Result<AdapterConfigJson> parse_adapter_config(std::string_view text);
/// Reads adapter_config.json of a folder. Errors name the file: NotFound; those of parsing it.
Result<AdapterConfigJson> read_adapter_config(const std::filesystem::path& folder);

/// Reads an adapter's trained weights into a flat array. Errors name the file: NotFound; Corrupt
/// for tensors of another shape, rank or set of targets.
Result<std::vector<float>> read_adapter(const std::filesystem::path& folder,
                                        const AdapterLayout& layout);

}  // namespace temper::actors
