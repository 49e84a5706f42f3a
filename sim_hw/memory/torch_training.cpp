#include "sim_hw/memory/torch_training.hpp"

#include "sim_hw/memory/activations.hpp"
#include "sim_hw/memory/weights.hpp"
#include "sim_hw/model/numbers.hpp"

#include <algorithm>
#include <cmath>

namespace temper::sim_hw {

namespace {

constexpr double kMebibyte = 1048576;
constexpr double kWorkspace = 64 * kMebibyte;  ///< 32 MiB per handle, cuBLAS and cuBLASLt.

/// Bytes that the caching allocator adds to a tensor of `bytes`.
double rounding(double bytes) {
  if (bytes < 10 * kMebibyte)
    return 0;
  const double excess = std::ceil(bytes / (2 * kMebibyte)) * 2 * kMebibyte - bytes;
  return excess > kMebibyte ? 0 : excess;
}

/// Rounding of the weights of all layers, in one copy of two bytes per parameter.
double weight_rounding(const ModelSpec& model) {
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
    return rounding(2 * as_double(rows) * as_double(columns));
  };
  const auto mlp = [&](std::int64_t ffn) {
    return (model.activation == Activation::SwiGlu ? 3 : 2) * matrix(ffn, model.hidden);
  };
  const std::int64_t query = model.heads * model.head_dim;
  double layer = matrix(model.hidden, model.heads * model.value_dim()) +
                 matrix(query, model.hidden) +
                 2 * matrix(model.kv_heads * model.head_dim, model.hidden);
  double sum = as_double(model.layers) * layer + as_double(model.dense_layers()) * mlp(model.ffn);
  if (model.moe) {
    sum += as_double(model.moe_layers() * model.moe->experts) * mlp(model.moe->expert_ffn);
  }
  return sum + (model.tie_embeddings ? 1 : 2) * matrix(model.vocabulary, model.hidden);
}

struct SavedLayerBytes {
  double bytes = 0;
  double rounding = 0;
};

SavedLayerBytes kept(const ModelSpec& model, double seq, double tokens, LayerKind kind) {
  TrainShape shape;
  shape.seq = static_cast<std::int64_t>(seq);
  SavedLayerBytes sum;
  const SavedTensors saved = saved_tensors(model, shape, kind, Gating::Eager);
  for (const SavedTensor& tensor : saved.all()) {
    sum.bytes += tokens * tensor.width * tensor.bytes;
    sum.rounding += rounding(tokens * tensor.width * tensor.bytes);
  }
  return sum;
}

}  // namespace

std::array<std::pair<std::string_view, double>, 7> TorchTrainingMemory::entries() const {
  return {{{"weights", weights},
           {"gradients", gradients},
           {"moments", moments},
           {"activations", activations},
           {"transient", transient},
           {"allocator rounding", rounding},
           {"workspace", workspace}}};
}

double TorchTrainingMemory::peak() const {
  return weights + gradients + moments + activations + transient + rounding + workspace;
}

TorchTrainingMemory torch_training_memory(const ModelSpec& model,
                                          double batch,
                                          double seq,
                                          Recompute recompute) {
  const double tokens = batch * seq;
  const double hidden = as_double(model.hidden);
  const double parameters = stage_parameters(model, Layout{}, 0).total();
  const double plane = 2 * tokens * hidden;
  const double table = 2 * as_double(model.vocabulary) * hidden;

  TorchTrainingMemory memory;
  memory.weights = 2 * parameters;
  memory.gradients = 2 * parameters;
  memory.moments = 4 * parameters;
  memory.rounding = 4 * weight_rounding(model);
  memory.workspace = kWorkspace;

  const SavedLayerBytes dense = kept(model, seq, tokens, LayerKind::Dense);
  const SavedLayerBytes experts = kept(model, seq, tokens, LayerKind::Experts);
  const double layers = as_double(model.layers);
  const double dense_layers = as_double(model.dense_layers());
  const double ends = 2 * plane;  // Input and output of the last norm.
  double layer_backward = 3 * plane;
  if (recompute == Recompute::Full) {
    memory.activations = layers * plane + ends;
    memory.rounding += layers * rounding(plane);
    layer_backward +=
        std::max(dense_layers > 0 ? dense.bytes : 0, dense_layers < layers ? experts.bytes : 0);
  } else {
    memory.activations =
        dense_layers * dense.bytes + (layers - dense_layers) * experts.bytes + ends;
    memory.rounding += dense_layers * dense.rounding + (layers - dense_layers) * experts.rounding;
  }
  // Gradients of the product, of silu(gate) and of up, before they become the gradient of gate.
  const double width =
      model.moe ? as_double(model.moe->top_k * model.moe->expert_ffn) : as_double(model.ffn);
  layer_backward += 3 * 2 * tokens * width;

  const double chunk = std::min(tokens, kHeadChunk);
  // The hidden states' gradient, and the head's weight gradient summed over chunks.
  const double head =
      3 * 4 * chunk * as_double(model.vocabulary) + plane + (tokens > kHeadChunk ? table : 0);
  // At this point every layer has freed its saved tensors.
  const double embedding = table + plane - memory.activations;
  memory.transient = std::max({head, layer_backward, embedding});
  memory.moment = memory.transient == head             ? "head"
                  : memory.transient == layer_backward ? "layer"
                                                       : "embedding";
  return memory;
}

}  // namespace temper::sim_hw
