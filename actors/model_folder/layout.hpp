// The tensors of a policy, their shapes, and their places in one flat array of floats. With a flat
// array, an optimizer step, a gradient norm, an offload and a copy are each one pass over memory.
//
// There are two views of the same floats. tensors(): as the network computes, with matrices that
// share an input fused. With d = hidden, h = head size, f = ffn, V = vocabulary:
//   embedding.weight [V, d]                 head.weight [V, d]           norm.weight [d]
//   layers.I.attention_norm.weight [d]      layers.I.ffn_norm.weight [d]
//   layers.I.attention.qkv.weight [(heads + 2 kv_heads) h, d]: rows of q, then k, then v, by head
//   layers.I.attention.qkv.bias [(heads + 2 kv_heads) h]                 Qwen2
//   layers.I.attention.q_norm.weight, .k_norm.weight [h]                 Qwen3
//   layers.I.attention.out.weight [d, heads h]
//   layers.I.ffn.gate_up.weight [2 f, d]: rows of gate, then up
//   layers.I.ffn.down.weight [d, f]
// A tied head is the embedding. A critic has another head: score.weight [1, d]. stored(): with the
// names of Hugging Face, as in files and messages (docs/how-to/your-model.md has the list).
#pragma once

#include "actors/model/model_config.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace temper::actors {

struct TensorSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;  ///< Index of its first float in the flat array.

  std::int64_t elements() const;
};

class Layout {
 public:
  /// `vocabulary` is used unless the model has its own. Errors: InvalidInput for sizes that do not
  /// divide, or a vocabulary below 2.
  static Result<Layout> make(const ModelConfig& model, std::int32_t vocabulary);
  /// A network of this shape that computes one value per row in place of logits.
  Layout of_critic() const;

  const ModelConfig& model() const { return model_; }
  std::int32_t vocabulary() const { return vocabulary_; }
  std::int32_t head_dim() const { return model_.head_size(); }
  /// Width of the queries of one row and of the attention output.
  std::int32_t attention_width() const { return head_dim() * model_.heads; }
  std::int32_t kv_width() const { return head_dim() * model_.kv_heads; }
  /// Width of one row of fused queries, keys and values.
  std::int32_t qkv_width() const { return attention_width() + 2 * kv_width(); }

  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  /// Cover the same floats as tensors(), each once.
  const std::vector<TensorSpec>& stored() const { return stored_; }
  /// Number of floats of the flat array, including padding.
  std::int64_t size() const { return size_; }
  /// Number of floats without padding.
  std::int64_t parameters() const;

  // Indices into tensors().
  std::size_t embedding() const { return 0; }
  std::size_t layer(std::int32_t i) const { return 1 + static_cast<std::size_t>(i) * per_layer(); }
  std::size_t norm() const { return layer(model_.layers); }
  std::size_t head() const { return model_.tie_embeddings ? embedding() : norm() + 1; }
  /// The tensors of a layer, as offsets from layer(i). Each of the last three belongs to one
  /// architecture.
  enum LayerTensor : std::size_t {
    AttentionNorm,
    Qkv,
    Out,
    FfnNorm,
    GateUp,
    Down,
    QkvBias = 6,
    QueryNorm = 6,
    KeyNorm = 7
  };

 private:
  /// A named part of a tensor: the rows after those of the previous part.
  struct Part {
    std::string name;
    std::int64_t rows = 0;
  };

  enum class Head { Logits, Value };
  Layout(const ModelConfig& model, std::int32_t vocabulary, Head head);
  std::size_t per_layer() const;
  void add_layer(std::int32_t i);
  void add(std::string name, std::vector<std::int64_t> shape, const std::vector<Part>& parts);

  ModelConfig model_;
  std::int32_t vocabulary_;
  std::vector<TensorSpec> tensors_;
  std::vector<TensorSpec> stored_;
  std::int64_t size_ = 0;
};

/// Names, in files and messages, of tensors of the whole network.
inline constexpr std::string_view kEmbeddingTensor = "model.embed_tokens.weight";
inline constexpr std::string_view kHeadTensor = "lm_head.weight";
inline constexpr std::string_view kValueHeadTensor = "score.weight";

}  // namespace temper::actors
