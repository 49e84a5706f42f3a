// Which tensors a policy has, their shapes, and where each lies in one flat array of floats. Flat,
// so that an optimizer step, a gradient norm, an offload and a copy are each one pass over memory.
//
// With d = hidden, h = d / heads, f = ffn, V = vocabulary:
//   embedding.weight [V, d]                 head.weight [V, d]           norm.weight [d]
//   layers.I.attention_norm.weight [d]      layers.I.ffn_norm.weight [d]
//   layers.I.attention.qkv.weight [(heads + 2 kv_heads) h, d]: rows of q, then k, then v, by head
//   layers.I.attention.out.weight [d, d]
//   layers.I.ffn.gate_up.weight [2 f, d]: rows of gate, then up
//   layers.I.ffn.down.weight [d, f]
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
  std::int64_t offset = 0;  ///< First float in the flat array; a multiple of 16 (a cache line).

  std::int64_t elements() const;
};

class Layout {
 public:
  /// Errors: sizes that do not divide; a vocabulary under 2.
  static Result<Layout> make(const ModelConfig& model, std::int32_t vocabulary);

  const ModelConfig& model() const { return model_; }
  std::int32_t vocabulary() const { return vocabulary_; }
  std::int32_t head_dim() const { return model_.hidden / model_.heads; }
  /// Width of one row of fused queries, keys and values.
  std::int32_t qkv_width() const { return head_dim() * (model_.heads + 2 * model_.kv_heads); }
  std::int32_t kv_width() const { return head_dim() * model_.kv_heads; }

  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  /// Floats of the flat array, padding included.
  std::int64_t size() const { return size_; }
  /// Floats without padding.
  std::int64_t parameters() const;

  // Indices into tensors().
  std::size_t embedding() const { return 0; }
  std::size_t layer(std::int32_t i) const { return 1 + static_cast<std::size_t>(i) * kPerLayer; }
  std::size_t norm() const { return layer(model_.layers); }
  std::size_t head() const { return norm() + 1; }
  /// The tensors of a layer, as offsets from layer(i).
  enum LayerTensor : std::size_t { AttentionNorm, Qkv, Out, FfnNorm, GateUp, Down };
  static constexpr std::size_t kPerLayer = 6;

 private:
  Layout(const ModelConfig& model, std::int32_t vocabulary);
  void add(std::string name, std::vector<std::int64_t> shape);

  ModelConfig model_;
  std::int32_t vocabulary_;
  std::vector<TensorSpec> tensors_;
  std::int64_t size_ = 0;
};

}  // namespace temper::actors
