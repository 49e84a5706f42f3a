#include "actors/policy/layout.hpp"

#include <fmt/format.h>

namespace temper::actors {

std::int64_t TensorSpec::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape)
    n *= extent;
  return n;
}

Result<Layout> Layout::make(const ModelConfig& model, std::int32_t vocabulary) {
  if (vocabulary < 2)
    return invalid_input(fmt::format("vocabulary of {} tokens: needs at least 2", vocabulary));
  if (model.hidden % model.heads != 0)
    return invalid_input(
        fmt::format("heads = {} does not divide hidden = {}", model.heads, model.hidden));
  if (model.heads % model.kv_heads != 0)
    return invalid_input(
        fmt::format("kv_heads = {} does not divide heads = {}", model.kv_heads, model.heads));
  if ((model.hidden / model.heads) % 2 != 0)
    return invalid_input(fmt::format("hidden / heads = {} is odd; rotary positions turn pairs",
                                     model.hidden / model.heads));
  return Layout(model, vocabulary);
}

Layout::Layout(const ModelConfig& model, std::int32_t vocabulary)
    : model_(model), vocabulary_(vocabulary) {
  const std::int64_t d = model.hidden;
  const std::int64_t f = model.ffn;
  add("embedding.weight", {vocabulary, d});
  for (std::int32_t i = 0; i < model.layers; ++i) {
    const std::string layer = fmt::format("layers.{}.", i);
    add(layer + "attention_norm.weight", {d});
    add(layer + "attention.qkv.weight", {qkv_width(), d});
    add(layer + "attention.out.weight", {d, d});
    add(layer + "ffn_norm.weight", {d});
    add(layer + "ffn.gate_up.weight", {2 * f, d});
    add(layer + "ffn.down.weight", {d, f});
  }
  add("norm.weight", {d});
  add("head.weight", {vocabulary, d});
}

void Layout::add(std::string name, std::vector<std::int64_t> shape) {
  constexpr std::int64_t kAlign = 16;
  tensors_.push_back({std::move(name), std::move(shape), size_});
  size_ += (tensors_.back().elements() + kAlign - 1) / kAlign * kAlign;
}

std::int64_t Layout::parameters() const {
  std::int64_t n = 0;
  for (const TensorSpec& tensor : tensors_)
    n += tensor.elements();
  return n;
}

}  // namespace temper::actors
