#include "actors/model_folder/layout.hpp"

#include <fmt/format.h>

namespace temper::actors {

std::int64_t TensorSpec::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape)
    n *= extent;
  return n;
}

Result<Layout> Layout::make(const ModelConfig& model, std::int32_t vocabulary) {
  const std::int32_t rows = model.vocabulary.value_or(vocabulary);
  if (rows < 2)
    return invalid_input(fmt::format("vocabulary: expected at least 2 tokens, found {}", rows));
  if (rows < vocabulary)
    return invalid_input(fmt::format(
        "vocabulary: {} tokens are too few for the tokenizer, which has {}", rows, vocabulary));
  if (!model.head_dim && model.hidden % model.heads != 0)
    return invalid_input(
        fmt::format("heads = {} does not divide hidden = {}", model.heads, model.hidden));
  if (model.heads % model.kv_heads != 0)
    return invalid_input(
        fmt::format("kv_heads = {} does not divide heads = {}", model.kv_heads, model.heads));
  if (model.head_size() < 2 || model.head_size() % 2 != 0)
    return invalid_input(
        fmt::format("head_dim: expected an even number, found {}", model.head_size()));
  return Layout(model, rows, Head::Logits);
}

Layout Layout::of_critic() const {
  ModelConfig own = model_;
  own.tie_embeddings = false;
  own.lora.reset();
  return Layout(own, vocabulary_, Head::Value);
}

Layout::Layout(const ModelConfig& model, std::int32_t vocabulary, Head head)
    : model_(model), vocabulary_(vocabulary) {
  const std::int64_t d = model.hidden;
  add("embedding.weight", {vocabulary, d}, {{std::string(kEmbeddingTensor), vocabulary}});
  for (std::int32_t i = 0; i < model.layers; ++i)
    add_layer(i);
  add("norm.weight", {d}, {{"model.norm.weight", d}});
  if (head == Head::Value)
    add("score.weight", {1, d}, {{std::string(kValueHeadTensor), 1}});
  else if (!model.tie_embeddings)
    add("head.weight", {vocabulary, d}, {{std::string(kHeadTensor), vocabulary}});
}

std::size_t Layout::per_layer() const {
  switch (model_.architecture) {
    case Architecture::Llama:
      break;
    case Architecture::Qwen2:
      return QkvBias + 1;
    case Architecture::Qwen3:
      return KeyNorm + 1;
  }
  return Down + 1;
}

void Layout::add_layer(std::int32_t i) {
  const std::int64_t d = model_.hidden;
  const std::int64_t f = model_.ffn;
  const std::int64_t q = attention_width();
  const std::int64_t kv = kv_width();
  const std::string own = fmt::format("layers.{}.", i);
  const std::string layer = "model." + own;
  const std::string attention = layer + "self_attn.";
  const auto qkv = [&](const char* what) -> std::vector<Part> {
    return {{attention + "q_proj." + what, q},
            {attention + "k_proj." + what, kv},
            {attention + "v_proj." + what, kv}};
  };
  add(own + "attention_norm.weight", {d}, {{layer + "input_layernorm.weight", d}});
  add(own + "attention.qkv.weight", {qkv_width(), d}, qkv("weight"));
  add(own + "attention.out.weight", {d, q}, {{attention + "o_proj.weight", d}});
  add(own + "ffn_norm.weight", {d}, {{layer + "post_attention_layernorm.weight", d}});
  add(own + "ffn.gate_up.weight",
      {2 * f, d},
      {{layer + "mlp.gate_proj.weight", f}, {layer + "mlp.up_proj.weight", f}});
  add(own + "ffn.down.weight", {d, f}, {{layer + "mlp.down_proj.weight", d}});
  if (model_.architecture == Architecture::Qwen2)
    add(own + "attention.qkv.bias", {qkv_width()}, qkv("bias"));
  if (model_.architecture == Architecture::Qwen3) {
    const std::int64_t h = head_dim();
    add(own + "attention.q_norm.weight", {h}, {{attention + "q_norm.weight", h}});
    add(own + "attention.k_norm.weight", {h}, {{attention + "k_norm.weight", h}});
  }
}

void Layout::add(std::string name,
                 std::vector<std::int64_t> shape,
                 const std::vector<Part>& parts) {
  constexpr std::int64_t kLine = 16;  // A cache line.
  std::int64_t at = size_;
  for (const Part& part : parts) {
    TensorSpec& stored = stored_.emplace_back(TensorSpec{part.name, shape, at});
    stored.shape[0] = part.rows;
    at += stored.elements();
  }
  tensors_.push_back({std::move(name), std::move(shape), size_});
  size_ = (at + kLine - 1) / kLine * kLine;
}

std::int64_t Layout::parameters() const {
  std::int64_t n = 0;
  for (const TensorSpec& tensor : tensors_)
    n += tensor.elements();
  return n;
}

}  // namespace temper::actors
