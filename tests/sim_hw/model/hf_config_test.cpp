#include "sim_hw/model/hf_config.hpp"

#include "core/files.hpp"
#include "core/json.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace temper::sim_hw {
namespace {

constexpr const char* kQwen3Moe =
    R"({"model_type": "qwen3_moe", "num_hidden_layers": 94, "hidden_size": 4096,
        "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128,
        "intermediate_size": 12288, "vocab_size": 151936, "max_position_embeddings": 40960,
        "tie_word_embeddings": false, "attention_bias": false, "num_experts": 128,
        "num_experts_per_tok": 8, "moe_intermediate_size": 1536, "decoder_sparse_step": 1,
        "mlp_only_layers": [], "use_sliding_window": false, "sliding_window": null})";

constexpr const char* kDeepSeek =
    R"({"model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168,
        "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
        "vocab_size": 129280, "max_position_embeddings": 163840, "tie_word_embeddings": false,
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "n_routed_experts": 256, "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048, "n_shared_experts": 1, "first_k_dense_replace": 3,
        "num_nextn_predict_layers": 1, "moe_layer_freq": 1})";

/// As JSON, without its names.
std::string dimensions(ModelSpec model) {
  model.name = model.source = "";
  model.aliases.clear();
  return to_json(model);
}

std::string shipped_dimensions(const char* name) {
  Catalog catalog = Catalog::shipped();
  return dimensions(**catalog.model(name));
}

std::string refusal(const std::string& json) {
  const auto model = model_of_config(json, "m");
  return model ? "" : model.error().context;
}

TEST(HfConfig, MatchesTheShippedDescriptionOfTheModel) {
  const auto dense_experts = model_of_config(kQwen3Moe, "a");
  ASSERT_TRUE(dense_experts) << dense_experts.error().context;
  EXPECT_EQ(dimensions(*dense_experts), shipped_dimensions("qwen3-235b-a22b"));
  const auto latent = model_of_config(kDeepSeek, "b");
  ASSERT_TRUE(latent) << latent.error().context;
  EXPECT_EQ(dimensions(*latent), shipped_dimensions("deepseek-v3"));
}

TEST(HfConfig, LoadsByPathAndTakesTheNameOfItsFolder) {
  const test::TemporaryFolder folder;
  const auto model_folder = folder.path() / "My-MoE";
  std::filesystem::create_directory(model_folder);
  ASSERT_TRUE(write_file_atomically(model_folder / "config.json", kQwen3Moe));
  Catalog catalog = Catalog::shipped();
  const auto model = catalog.model((model_folder / "config.json").string());
  ASSERT_TRUE(model) << model.error().context;
  EXPECT_EQ((*model)->name, "My-MoE");
  EXPECT_EQ((*model)->moe->experts, 128);
}

TEST(HfConfig, NamesUnsupportedFeatures) {
  EXPECT_NE(refusal(R"({"model_type": "bert"})").find("`model_type` is `bert`; supported: `llama`"),
            std::string::npos);
  EXPECT_EQ(refusal(R"({"model_type": "llama"})"),
            "`num_hidden_layers` is missing; expected a count");
  EXPECT_EQ(refusal("[]"), "expected a JSON object");
  std::string windowed = kQwen3Moe;
  windowed.replace(
      windowed.find("\"use_sliding_window\": false"), 27, "\"use_sliding_window\": true ");
  EXPECT_NE(refusal(windowed).find("sliding_window"), std::string::npos);
  std::string some_dense = kQwen3Moe;
  some_dense.replace(some_dense.find("\"mlp_only_layers\": []"), 21, "\"mlp_only_layers\": [1]");
  EXPECT_NE(refusal(some_dense).find("mlp_only_layers"), std::string::npos);
}

}  // namespace
}  // namespace temper::sim_hw
