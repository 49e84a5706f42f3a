#include "sim_hw/memory/weights.hpp"

#include "sim_hw/layout/stages.hpp"
#include "sim_hw/model/numbers.hpp"

#include <algorithm>

namespace temper::sim_hw {

namespace {

double norm(const ModelSpec& model) {
  return as_double(model.hidden) * (model.layer_norm ? 2 : 1) * (model.sandwich_norm ? 2 : 1);
}

double attention(const ModelSpec& model, double tp) {
  const double hidden = as_double(model.hidden);
  const double heads = as_double(model.heads) / tp;
  const double query = as_double(model.head_dim);
  const double value = as_double(model.value_dim());
  double sum = heads * value * hidden + (model.linear_bias ? hidden : 0);
  if (model.latent) {
    const double query_rank = as_double(model.latent->q_lora_rank);
    const double rank = as_double(model.latent->kv_lora_rank);
    const double rope = as_double(model.latent->qk_rope_dim);
    const double nope = as_double(model.latent->qk_nope_dim);
    sum += query_rank * (hidden + 1) + query_rank * heads * (nope + rope);
    return sum + hidden * (rank + rope) + rank + rank * heads * (nope + value);
  }
  const double kv_heads = std::max(1.0, as_double(model.kv_heads) / tp);
  const double outputs = heads * query + kv_heads * (query + value);
  sum += hidden * outputs + (model.qkv_bias || model.linear_bias ? outputs : 0);
  return sum + (model.qk_norm ? 2 * query : 0);
}

double mlp(const ModelSpec& model, double ffn, double tp) {
  const double hidden = as_double(model.hidden);
  const double inner = model.activation == Activation::SwiGlu ? 2 : 1;
  return (inner + 1) * hidden * ffn / tp + (model.linear_bias ? inner * ffn / tp + hidden : 0);
}

}  // namespace

LayerParameters layer_parameters(const ModelSpec& model, const Layout& layout) {
  const double tp = as_double(layout.tp);
  LayerParameters weights;
  weights.attention = attention(model, tp) + norm(model);
  weights.dense = mlp(model, as_double(model.ffn), tp) + norm(model);
  if (model.moe) {
    const MixtureOfExperts& moe = *model.moe;
    const double share = as_double(moe.experts) / as_double(layout.ep);
    weights.shared = norm(model) + as_double(model.hidden * moe.experts);
    if (moe.shared_experts > 0)
      weights.shared += mlp(model, as_double(moe.shared_experts * moe.shared_expert_ffn), tp);
    weights.experts = share * mlp(model, as_double(moe.expert_ffn), as_double(layout.expert_tp));
  }
  return weights;
}

std::int64_t dense_stage_layers(const ModelSpec& model, const Layout& layout, std::int64_t stage) {
  const std::int64_t layers = stage_layers(model, layout, stage);
  const std::int64_t before = layers_before(model, layout, stage);
  return std::clamp<std::int64_t>(model.dense_layers() - before, 0, layers);
}

std::int64_t first_uniform_stage(const ModelSpec& model, const Layout& layout) {
  if (!model.moe)
    return 0;
  const std::int64_t most = stage_layers(model, layout, 0);
  std::int64_t stage = (model.moe->dense_layers + most - 1) / most;
  while (stage < layout.pp - 1 && layers_before(model, layout, stage) < model.moe->dense_layers)
    ++stage;
  return std::min(stage, layout.pp - 1);
}

StageParameters stage_parameters(const ModelSpec& model, const Layout& layout, std::int64_t stage) {
  const LayerParameters layer = layer_parameters(model, layout);
  const double tp = as_double(layout.tp);
  const double hidden = as_double(model.hidden);
  const double table = as_double(model.vocabulary) * hidden / tp;
  const double layers = as_double(stage_layers(model, layout, stage));
  const double dense = as_double(dense_stage_layers(model, layout, stage));
  StageParameters weights;
  weights.layers = layers * layer.attention + dense * layer.dense + (layers - dense) * layer.shared;
  weights.experts = (layers - dense) * layer.experts;
  if (stage == 0)
    weights.embedding_and_head += table + as_double(model.learned_positions) * hidden;
  const StageModules modules = stage_modules(model, layout, stage);
  if (modules.heads > 0) {
    weights.embedding_and_head += model.layer_norm ? 2 * hidden : hidden;
    if (!model.tie_embeddings || layout.pp > 1)
      weights.embedding_and_head += table;
  }
  if (modules.mtp > 0) {
    const double mtp = as_double(modules.mtp);
    const double mlp_part = model.moe ? layer.shared : layer.dense;
    weights.layers += mtp * (layer.attention + mlp_part + hidden * (2 * hidden + 3));
    weights.experts += mtp * layer.experts;
  }
  return weights;
}

StageParameters device_parameters(const ModelSpec& model,
                                  const Layout& layout,
                                  const TrainShape& shape,
                                  std::int64_t stage) {
  StageParameters weights = stage_parameters(model, layout, stage);
  if (weight_copies(shape) == 1)
    return weights;
  const StageParameters mirror = stage_parameters(model, layout, mirrored_stage(layout, stage));
  weights.layers += mirror.layers;
  weights.experts += mirror.experts;
  weights.embedding_and_head += mirror.embedding_and_head;
  return weights;
}

}  // namespace temper::sim_hw
