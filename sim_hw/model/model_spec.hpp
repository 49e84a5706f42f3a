// The dimensions of a model, as its `config.json` states them, read from configs/models/*.yaml.
// Parameter counts are computed from the dimensions. Values only; no threads.
#pragma once

#include "core/describe.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace temper::sim_hw {

/// Multi-head latent attention (DeepSeek-V2/V3): queries and keys go through low-rank latents.
struct LatentAttention {
  std::int64_t q_lora_rank = 1536;
  std::int64_t kv_lora_rank = 512;
  std::int64_t qk_nope_dim = 128;  ///< Per head, without position.
  std::int64_t qk_rope_dim = 64;   ///< Per head, rotary; the key's is shared by all heads.
};
void describe(auto& v, LatentAttention& c) {
  v.field(1, "q_lora_rank", c.q_lora_rank, {.doc = "Rank of the query latent.", .min = 1});
  v.field(
      2, "kv_lora_rank", c.kv_lora_rank, {.doc = "Rank of the cached key-value latent.", .min = 1});
  v.field(3,
          "qk_nope_dim",
          c.qk_nope_dim,
          {.doc = "Head size of the part without position.", .min = 1});
  v.field(4, "qk_rope_dim", c.qk_rope_dim, {.doc = "Head size of the rotary part.", .min = 0});
}

/// Attention to selected tokens (DeepSeek-V3.2): an index scores all cached keys, and attention
/// reads those with the best scores.
struct SparseAttention {
  std::int64_t top_tokens = 2048;  ///< Tokens that a query attends, at most.
  std::int64_t index_heads = 64;
  std::int64_t index_dim =
      128;  ///< Of the one key per token that all index heads share, in 8 bits.
};
void describe(auto& v, SparseAttention& c) {
  v.field(1, "top_tokens", c.top_tokens, {.doc = "Tokens that a query attends.", .min = 1});
  v.field(2, "index_heads", c.index_heads, {.doc = "Heads of the index.", .min = 1});
  v.field(3, "index_dim", c.index_dim, {.doc = "Size of an index key, in 8 bits.", .min = 1});
}

/// Routed experts; the first `dense_layers` layers keep the dense MLP.
struct MixtureOfExperts {
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t expert_ffn = 0;         ///< Intermediate size of one expert.
  std::int64_t shared_experts = 0;     ///< Applied to every token.
  std::int64_t shared_expert_ffn = 0;  ///< Intermediate size of one shared expert.
  std::int64_t dense_layers = 0;       ///< First layers, which have the dense MLP instead.
};
void describe(auto& v, MixtureOfExperts& c) {
  v.field(1, "experts", c.experts, {.doc = "Routed experts per layer.", .min = 1});
  v.field(2, "top_k", c.top_k, {.doc = "Experts per token.", .min = 1});
  v.field(3, "expert_ffn", c.expert_ffn, {.doc = "Intermediate size of one expert.", .min = 1});
  v.field(
      4, "shared_experts", c.shared_experts, {.doc = "Experts applied to every token.", .min = 0});
  v.field(5,
          "shared_expert_ffn",
          c.shared_expert_ffn,
          {.doc = "Intermediate size of one shared expert.", .min = 0});
  v.field(6,
          "dense_layers",
          c.dense_layers,
          {.doc = "Number of first layers with a dense MLP.", .min = 0});
}

enum class Activation { SwiGlu, Gelu };

}  // namespace temper::sim_hw

template <>
struct temper::EnumNames<temper::sim_hw::Activation> {
  static constexpr std::array<std::pair<sim_hw::Activation, std::string_view>, 2> value{
      {{sim_hw::Activation::SwiGlu, "swiglu"}, {sim_hw::Activation::Gelu, "gelu"}}};
};

namespace temper::sim_hw {

struct ModelSpec {
  std::string name;
  std::string source;  ///< Source of the dimensions.
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  ///< For queries and keys; with latent attention nope + rope.
  std::optional<std::int64_t> v_head_dim;      ///< For values, if it differs from head_dim.
  std::int64_t ffn = 0;                        ///< Intermediate size of the dense MLP.
  Activation activation = Activation::SwiGlu;  ///< SwiGlu has three matrices, Gelu two.
  std::int64_t vocabulary = 0;  ///< 0: a model without embeddings, as some papers count.
  bool tie_embeddings = false;
  bool qkv_bias = false;
  bool linear_bias = false;            ///< Bias on every projection, as GPT has.
  bool qk_norm = false;                ///< RMS norm of every query and key head.
  bool sandwich_norm = false;          ///< Norms before and after both attention and MLP.
  bool layer_norm = false;             ///< Layer norm with mean and bias; else RMS norm.
  std::int64_t learned_positions = 0;  ///< Rows of a learned position table; 0: rotary.
  std::int64_t max_position = 0;
  std::int64_t mtp_layers = 0;  ///< Multi-token-prediction modules after the last layer.
  std::optional<LatentAttention> latent;
  std::optional<MixtureOfExperts> moe;
  std::optional<SparseAttention> sparse;
  std::vector<std::string> aliases;  ///< Other names of a model with these dimensions.

  std::int64_t value_dim() const { return v_head_dim.value_or(head_dim); }
  std::int64_t dense_layers() const { return moe ? moe->dense_layers : layers; }
  std::int64_t moe_layers() const { return layers - dense_layers(); }
};
void describe(auto& v, ModelSpec& c) {
  v.field(1, "name", c.name, {.doc = "Name used by the publisher."});
  v.field(2, "source", c.source, {.doc = "Source of the dimensions."});
  v.field(3, "layers", c.layers, {.doc = "Transformer layers, without MTP modules.", .min = 1});
  v.field(4, "hidden", c.hidden, {.doc = "Width of the residual stream.", .min = 1});
  v.field(5, "heads", c.heads, {.doc = "Query heads.", .min = 1});
  v.field(6, "kv_heads", c.kv_heads, {.doc = "Key and value heads.", .min = 1});
  v.field(7, "head_dim", c.head_dim, {.doc = "Size of a query or key head.", .min = 1});
  v.field(8, "v_head_dim", c.v_head_dim, {.doc = "Size of a value head, if it differs."});
  v.field(9, "ffn", c.ffn, {.doc = "Intermediate size of the dense MLP.", .min = 0});
  v.field(10, "activation", c.activation, {.doc = "swiglu (three matrices) or gelu (two)."});
  v.field(11, "vocabulary", c.vocabulary, {.doc = "Rows of the embedding table.", .min = 0});
  v.field(12,
          "tie_embeddings",
          c.tie_embeddings,
          {.doc = "Whether head and embedding share their weights."});
  v.field(13, "qkv_bias", c.qkv_bias, {.doc = "Bias on queries, keys and values."});
  v.field(14, "linear_bias", c.linear_bias, {.doc = "Bias on every projection."});
  v.field(15, "qk_norm", c.qk_norm, {.doc = "RMS norm of every query and key head."});
  v.field(16,
          "sandwich_norm",
          c.sandwich_norm,
          {.doc = "Norms before and after both attention and MLP."});
  v.field(17, "layer_norm", c.layer_norm, {.doc = "Layer norm with bias instead of RMS norm."});
  v.field(18,
          "learned_positions",
          c.learned_positions,
          {.doc = "Rows of a learned position table; 0: rotary.", .min = 0});
  v.field(19, "max_position", c.max_position, {.doc = "Longest context; 0: unknown.", .min = 0});
  v.field(20, "mtp_layers", c.mtp_layers, {.doc = "Multi-token-prediction modules.", .min = 0});
  v.field(21, "latent", c.latent, {.doc = "Multi-head latent attention."});
  v.field(22, "moe", c.moe, {.doc = "Routed experts."});
  v.field(24, "sparse", c.sparse, {.doc = "Attention to selected tokens, when decoding."});
  v.field(23, "aliases", c.aliases, {.doc = "Other names of a model with these dimensions."});
}

}  // namespace temper::sim_hw
