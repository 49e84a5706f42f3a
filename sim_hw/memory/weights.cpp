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

double experts_of_device(const MixtureOfExperts& moe, const Layout& layout) {
  return as_double(moe.experts + layout.redundant_experts) / as_double(layout.ep);
}

/// Of the adapters of one layer, by what counts of each.
LayerParameters sum_of_adapters(const ModelSpec& model,
                                const Layout& layout,
                                const Adapter& adapter,
                                double (LowRankLayers::*width)() const) {
  const double tp = as_double(layout.tp);
  const AdapterShapes shapes =
      adapter_shapes(model, adapter, {tp, tp, as_double(layout.expert_tp)});
  const auto parameters = [&](const LowRankLayers& layers) {
    return shapes.rank * (layers.*width)();
  };
  LayerParameters out;
  out.attention = parameters(shapes.attention);
  out.dense = parameters(shapes.dense);
  if (model.moe) {
    out.shared = parameters(shapes.shared);
    out.experts = experts_of_device(*model.moe, layout) * parameters(shapes.expert);
  }
  return out;
}

/// The layers and MTP modules of a stage; a module has `extra` parameters besides those of a layer.
StageParameters sum_of_layers(const ModelSpec& model,
                              const Layout& layout,
                              const LayerParameters& layer,
                              double extra,
                              std::int64_t stage) {
  const double layers = as_double(stage_layers(model, layout, stage));
  const double dense = as_double(dense_stage_layers(model, layout, stage));
  StageParameters out;
  out.layers = layers * layer.attention + dense * layer.dense + (layers - dense) * layer.shared;
  out.experts = (layers - dense) * layer.experts;
  if (const StageModules modules = stage_modules(model, layout, stage); modules.mtp > 0) {
    const double mtp = as_double(modules.mtp);
    out.layers += mtp * (layer.attention + (model.moe ? layer.shared : layer.dense) + extra);
    out.experts += mtp * layer.experts;
  }
  return out;
}

/// Of the device of stage `stage`; with DualPipe also of the mirrored stage.
template <class Of>
StageParameters with_mirror(const Layout& layout,
                            const TrainShape& shape,
                            std::int64_t stage,
                            const Of& of) {
  StageParameters out = of(stage);
  if (weight_copies(shape) == 1)
    return out;
  return out += of(mirrored_stage(layout, stage));
}

}  // namespace

LayerParameters layer_parameters(const ModelSpec& model,
                                 const Layout& layout,
                                 const Adapter& adapter) {
  return sum_of_adapters(model, layout, adapter, &LowRankLayers::width);
}

LayerParameters layer_parameters(const ModelSpec& model, const Layout& layout) {
  const double tp = as_double(layout.tp);
  LayerParameters weights;
  weights.attention = attention(model, tp) + norm(model);
  weights.dense = mlp(model, as_double(model.ffn), tp) + norm(model);
  if (model.moe) {
    const MixtureOfExperts& moe = *model.moe;
    const double share = experts_of_device(moe, layout);
    weights.shared = norm(model) + as_double(model.hidden * moe.experts);
    if (moe.shared_experts > 0)
      weights.shared += mlp(model, as_double(moe.shared_experts * moe.shared_expert_ffn), tp);
    weights.experts = share * mlp(model, as_double(moe.expert_ffn), as_double(layout.expert_tp));
  }
  return weights;
}

double eagle_parameters(const ModelSpec& model, const Layout& layout) {
  const LayerParameters layer = layer_parameters(model, layout);
  return layer.attention + layer.dense + 2 * as_double(model.hidden * model.hidden);
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
  const double tp = as_double(layout.tp);
  const double hidden = as_double(model.hidden);
  const double table = as_double(model.vocabulary) * hidden / tp;
  StageParameters weights = sum_of_layers(
      model, layout, layer_parameters(model, layout), hidden * (2 * hidden + 3), stage);
  if (stage == 0)
    weights.embedding_and_head += table + as_double(model.learned_positions) * hidden;
  if (stage_modules(model, layout, stage).heads > 0) {
    weights.embedding_and_head += model.layer_norm ? 2 * hidden : hidden;
    if (!model.tie_embeddings || layout.pp > 1)
      weights.embedding_and_head += table;
  }
  return weights;
}

StageParameters stage_parameters(const ModelSpec& model,
                                 const Layout& layout,
                                 const Adapter& adapter,
                                 std::int64_t stage) {
  return sum_of_layers(model, layout, layer_parameters(model, layout, adapter), 0, stage);
}

StageParameters device_parameters(const ModelSpec& model,
                                  const Layout& layout,
                                  const TrainShape& shape,
                                  std::int64_t stage) {
  return with_mirror(
      layout, shape, stage, [&](std::int64_t of) { return stage_parameters(model, layout, of); });
}

StageParameters trained_parameters(const ModelSpec& model,
                                   const Layout& layout,
                                   const TrainShape& shape,
                                   std::int64_t stage) {
  if (!shape.adapter)
    return device_parameters(model, layout, shape, stage);
  return with_mirror(layout, shape, stage, [&](std::int64_t of) {
    return stage_parameters(model, layout, *shape.adapter, of);
  });
}

StageParameters gathered_parameters(const ModelSpec& model,
                                    const Layout& layout,
                                    const TrainShape& shape,
                                    std::int64_t stage) {
  StageParameters out = trained_parameters(model, layout, shape, stage);
  if (shape.adapter && layout.zero >= Zero::Weights)
    out += device_parameters(model, layout, shape, stage);
  return out;
}

StageParameters replicated_parameters(const ModelSpec& model,
                                      const Layout& layout,
                                      const TrainShape& shape,
                                      std::int64_t stage) {
  if (!shape.adapter)
    return {};
  const LayerParameters layer =
      sum_of_adapters(model, layout, *shape.adapter, &LowRankLayers::whole);
  StageParameters out = with_mirror(layout, shape, stage, [&](std::int64_t of) {
    return sum_of_layers(model, layout, layer, 0, of);
  });
  if (layout.tp == 1)
    out.layers = 0;
  if (layout.expert_tp == 1)
    out.experts = 0;
  return out;
}

}  // namespace temper::sim_hw
