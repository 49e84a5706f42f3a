#include "actors/model_folder/adapter_folder.hpp"

#include "actors/model_folder/stored_tensors.hpp"
#include "core/files.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

namespace temper::actors {
namespace {

/// Settings with which an adapter is a plain one. peft writes those that it knows.
nlohmann::json plain_settings() {
  const auto none = nlohmann::json::object();
  return {{"peft_type", "LORA"},
          {"bias", "none"},
          {"fan_in_fan_out", false},
          {"use_rslora", false},
          {"use_dora", false},
          {"use_qalora", false},
          {"use_bdlora", nullptr},
          {"lora_bias", false},
          {"modules_to_save", nullptr},
          {"exclude_modules", nullptr},
          {"layers_to_transform", nullptr},
          {"layer_replication", nullptr},
          {"target_parameters", nullptr},
          {"trainable_token_indices", nullptr},
          {"alora_invocation_tokens", nullptr},
          {"arrow_config", nullptr},
          {"kasa_config", nullptr},
          {"monteclora_config", nullptr},
          {"rank_pattern", none},
          {"alpha_pattern", none}};
}

/// Initializations of peft that leave the base as it is. Others, such as PiSSA, change its weights,
/// so an adapter does not fit the original base.
Status check_initialization(const nlohmann::json& json) {
  const auto found = json.find("init_lora_weights");
  if (found == json.end() || found->is_boolean() || *found == "gaussian" || *found == "eva" ||
      *found == "orthogonal")
    return {};
  return invalid_input(
      fmt::format("init_lora_weights: expected true, false, \"gaussian\", \"eva\" or "
                  "\"orthogonal\", which keep the weights of the base, found {}",
                  found->dump()));
}

}  // namespace

bool is_adapter_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / kAdapterConfigFile, ignored);
}

Result<AdapterConfigJson> parse_adapter_config(std::string_view text) {
  const nlohmann::json json = parse_json(text);
  if (!json.is_object())
    return corrupt("expected a JSON object");
  const nlohmann::json settings = plain_settings();
  for (const auto& [key, plain] : settings.items()) {
    if (json.contains(key) && json[key] != plain) {
      return invalid_input(
          fmt::format("{}: expected {}, found {}", key, plain.dump(), json[key].dump()));
    }
  }
  TEMPER_TRY_STATUS(check_initialization(json));
  AdapterConfigJson config;
  const auto wrong = [&](const char* key, std::string_view expected) {
    return corrupt(fmt::format("{}: expected {}, found {}",
                               key,
                               expected,
                               json.contains(key) ? json[key].dump() : "nothing"));
  };
  if (!json.contains("r") || !json["r"].is_number_unsigned() || json["r"] < 1U ||
      json["r"] > LoraConfig::kMostRank)
    return wrong("r", fmt::format("an integer from 1 to {}", LoraConfig::kMostRank));
  if (!json.contains("lora_alpha") || !json["lora_alpha"].is_number() ||
      json["lora_alpha"] < LoraConfig::kLeastAlpha || json["lora_alpha"] > LoraConfig::kMostAlpha) {
    return wrong(
        "lora_alpha",
        fmt::format("a number from {} to {}", LoraConfig::kLeastAlpha, LoraConfig::kMostAlpha));
  }
  if (!json.contains("target_modules") || !json["target_modules"].is_array())
    return wrong("target_modules", "a list of names");
  config.lora.rank = json["r"].get<std::int32_t>();
  config.lora.alpha = json["lora_alpha"].get<double>();
  config.lora.targets.clear();
  for (const auto& name : json["target_modules"]) {
    if (!name.is_string())
      return wrong("target_modules", "a list of names");
    config.lora.targets.push_back(name.get<std::string>());
  }
  if (json.contains("base_model_name_or_path") && json["base_model_name_or_path"].is_string())
    config.base = json["base_model_name_or_path"].get<std::string>();
  return config;
}

std::string adapter_config_json(const LoraConfig& lora, const std::string& base) {
  const nlohmann::ordered_json config = {{"peft_type", "LORA"},
                                         {"task_type", "CAUSAL_LM"},
                                         {"base_model_name_or_path", base},
                                         {"r", lora.rank},
                                         {"lora_alpha", lora.alpha},
                                         {"lora_dropout", 0.0},
                                         {"target_modules", lora.targets},
                                         {"bias", "none"},
                                         {"fan_in_fan_out", false},
                                         {"use_rslora", false},
                                         {"use_dora", false},
                                         {"modules_to_save", nullptr},
                                         {"init_lora_weights", true},
                                         {"inference_mode", true}};
  return config.dump(2) + "\n";
}

Result<AdapterConfigJson> read_adapter_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kAdapterConfigFile;
  TEMPER_TRY(const std::string text, read_file(file));
  auto config = parse_adapter_config(text);
  if (!config)
    return std::move(config).error().within(file.string());
  return config;
}

Result<std::vector<float>> read_adapter(const std::filesystem::path& folder,
                                        const AdapterLayout& layout) {
  const std::filesystem::path file = folder / kAdapterFile;
  TEMPER_TRY(const std::string bytes, read_file(file));
  std::vector<float> flat(static_cast<std::size_t>(layout.size()));
  const auto read = [&]() -> Status {
    TEMPER_TRY(const auto image, parse_safetensors(std::as_bytes(std::span(bytes))));
    return copy_tensors(image, tensors_to_read(layout, flat));
  };
  if (Status status = read(); !status)
    return std::move(status).error().within(file.string());
  return flat;
}

}  // namespace temper::actors
