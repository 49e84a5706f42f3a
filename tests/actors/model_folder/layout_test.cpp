#include "actors/model_folder/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace temper::actors {
namespace {

ModelConfig small(Architecture architecture) {
  ModelConfig model;
  model.hidden = 16;
  model.layers = 2;
  model.heads = 4;
  model.kv_heads = 2;
  model.ffn = 24;
  model.architecture = architecture;
  return model;
}

std::vector<std::string> names_of_layer(Architecture architecture) {
  std::vector<std::string> names;
  const std::string prefix = "model.layers.1.";
  const Layout layout = Layout::make(small(architecture), 11).value();
  for (const TensorSpec& t : layout.stored()) {
    if (t.name.starts_with(prefix))
      names.push_back(t.name.substr(prefix.size()));
  }
  std::ranges::sort(names);
  return names;
}

TEST(Layout, RejectsSizesThatDoNotDivide) {
  ModelConfig model = small(Architecture::Llama);
  model.heads = 3;
  EXPECT_FALSE(Layout::make(model, 8));
  model = small(Architecture::Llama);
  model.kv_heads = 3;
  EXPECT_FALSE(Layout::make(model, 8));
  model = small(Architecture::Llama);
  model.head_dim = 5;
  EXPECT_FALSE(Layout::make(model, 8));
  model.head_dim = 6;
  EXPECT_TRUE(Layout::make(model, 8));
}

TEST(Layout, RejectsATokenizerLargerThanTheEmbedding) {
  ModelConfig model = small(Architecture::Llama);
  model.vocabulary = 10;
  EXPECT_TRUE(Layout::make(model, 10));
  EXPECT_FALSE(Layout::make(model, 11));
}

TEST(Layout, UsesTheTensorNamesOfHuggingFace) {
  const std::vector<std::string> llama{"input_layernorm.weight",
                                       "mlp.down_proj.weight",
                                       "mlp.gate_proj.weight",
                                       "mlp.up_proj.weight",
                                       "post_attention_layernorm.weight",
                                       "self_attn.k_proj.weight",
                                       "self_attn.o_proj.weight",
                                       "self_attn.q_proj.weight",
                                       "self_attn.v_proj.weight"};
  EXPECT_EQ(names_of_layer(Architecture::Llama), llama);
  std::vector<std::string> qwen2 = llama;
  for (const char* const name : {"q", "k", "v"})
    qwen2.push_back(std::string("self_attn.") + name + "_proj.bias");
  std::ranges::sort(qwen2);
  EXPECT_EQ(names_of_layer(Architecture::Qwen2), qwen2);
  std::vector<std::string> qwen3 = llama;
  qwen3.insert(qwen3.end(), {"self_attn.q_norm.weight", "self_attn.k_norm.weight"});
  std::ranges::sort(qwen3);
  EXPECT_EQ(names_of_layer(Architecture::Qwen3), qwen3);
}

// q: 4 heads of 4 floats, k and v: 2 heads; gate and up: 24 rows each; all over 16 columns.
TEST(Layout, KeepsFusedTensorsAdjacent) {
  const Layout layout = Layout::make(small(Architecture::Llama), 11).value();
  const auto find = [&](const std::string& name) {
    return *std::ranges::find(layout.stored(), name, &TensorSpec::name);
  };
  const TensorSpec q = find("model.layers.0.self_attn.q_proj.weight");
  const TensorSpec k = find("model.layers.0.self_attn.k_proj.weight");
  const TensorSpec v = find("model.layers.0.self_attn.v_proj.weight");
  EXPECT_EQ(q.offset, layout.tensors()[layout.layer(0) + Layout::Qkv].offset);
  EXPECT_EQ(q.shape, (std::vector<std::int64_t>{16, 16}));
  EXPECT_EQ(k.offset, q.offset + 16 * 16);
  EXPECT_EQ(k.shape, (std::vector<std::int64_t>{8, 16}));
  EXPECT_EQ(v.offset, k.offset + 8 * 16);
  EXPECT_EQ(find("model.layers.0.mlp.up_proj.weight").offset,
            find("model.layers.0.mlp.gate_proj.weight").offset + 24 * 16);
}

TEST(Layout, StoredTensorsCoverEachFloatOnce) {
  for (const auto& [architecture, name] : EnumNames<Architecture>::value) {
    for (const bool tied : {false, true}) {
      ModelConfig model = small(architecture);
      model.tie_embeddings = tied;
      model.head_dim = 6;
      const Layout layout = Layout::make(model, 11).value();
      std::set<std::int64_t> floats;
      std::int64_t stored = 0;
      for (const TensorSpec& t : layout.stored()) {
        stored += t.elements();
        for (std::int64_t i = 0; i < t.elements(); ++i)
          floats.insert(t.offset + i);
      }
      EXPECT_EQ(stored, layout.parameters()) << name;
      EXPECT_EQ(static_cast<std::int64_t>(floats.size()), stored) << name;
      EXPECT_LE(*floats.rbegin(), layout.size()) << name;
      const auto& head = layout.tensors()[layout.head()];
      EXPECT_EQ(head.shape, (std::vector<std::int64_t>{11, 16})) << name;
      EXPECT_EQ(head.name == "embedding.weight", tied) << name;
    }
  }
}

}  // namespace
}  // namespace temper::actors
