#include "sim_hw/memory/ledger.hpp"

#include "sim_hw/memory/activations.hpp"
#include "sim_hw/numbers.hpp"

#include <algorithm>

namespace temper::sim_hw {

namespace {

/// What a state's parameters weigh when ZeRO shards it or not.
double sharded(const StageWeights& weights, const Layout& layout, bool sharding, double bytes) {
  if (!sharding)
    return weights.total() * bytes;
  return (weights.dense() / as_double(layout.dp * layout.cp) +
          weights.experts / as_double(layout.expert_dp())) *
         bytes;
}

struct LayerBytes {
  double dense = 0;
  double experts = 0;
};

/// Kept per layer and micro-batch.
LayerBytes layer_bytes(const ModelSpec& model,
                       const Layout& layout,
                       const TrainShape& shape,
                       Recompute recompute) {
  const double tokens = as_double(shape.seq * shape.micro_batch) / as_double(layout.cp);
  LayerBytes bytes;
  bytes.dense =
      tokens *
      saved_tensors(model, shape, LayerKind::Dense).bytes_per_token(layout, shape, recompute);
  bytes.experts = bytes.dense;
  if (model.moe) {
    bytes.experts =
        tokens *
        saved_tensors(model, shape, LayerKind::Experts).bytes_per_token(layout, shape, recompute);
  }
  return bytes;
}

/// Of the layer mix of `stage`, per layer.
double mean_layer_bytes(const LayerBytes& bytes, double dense, double layers) {
  return layers == 0 ? 0 : (dense * bytes.dense + (layers - dense) * bytes.experts) / layers;
}

double communication_bytes(const ModelSpec& model, const Layout& layout, const TrainShape& shape) {
  const double tokens = as_double(shape.seq * shape.micro_batch) / as_double(layout.cp);
  const double plane = 2 * tokens * as_double(model.hidden);
  const double tp = as_double(layout.tp);
  double bytes = 0;
  if (layout.sequence_parallel == SequenceParallel::On && layout.tp > 1)
    bytes += 2 * plane;  // The gathered input, and its gradient before the reduce-scatter.
  if (model.moe && layout.ep > 1)  // Dispatched and combined copies.
    bytes += 2 * plane * as_double(model.moe->top_k) * shape.expert_imbalance / tp;
  if (layout.pp > 1)
    bytes += 4 * plane / tp;  // Send and receive, forward and backward.
  if (layout.cp > 1)          // Double-buffered key and value blocks and their gradients.
    bytes += 4 * 2 * tokens * 2 * as_double(model.kv_heads * model.head_dim) / tp;
  return bytes;
}

}  // namespace

std::array<std::pair<std::string_view, double>, 9> Ledger::entries() const {
  return {{{"weights", weights},
           {"gradients", gradients},
           {"optimizer", optimizer},
           {"activations", activations},
           {"recompute working set", recompute_working_set},
           {"head", head},
           {"KV cache", kv_cache},
           {"communication", communication},
           {"reserve", reserve}}};
}

double Ledger::total() const {
  return weights + gradients + optimizer + activations + recompute_working_set + head + kv_cache +
         communication + reserve;
}

double layers_in_flight(const ModelSpec& model,
                        const Layout& layout,
                        const TrainShape& shape,
                        std::int64_t stage) {
  const double layers = as_double(stage_layers(model, layout, stage));
  const std::int64_t micro_batches = std::max<std::int64_t>(1, shape.micro_batches(layout));
  if (layout.vpp == 1)
    return layers * as_double(std::min(layout.pp - stage, micro_batches));
  const std::int64_t chunks = std::min(
      2 * (layout.pp - stage - 1) + (layout.vpp - 1) * layout.pp + 1, micro_batches * layout.vpp);
  return layers * as_double(chunks) / as_double(layout.vpp);
}

Ledger train_ledger(const ModelSpec& model,
                    const Layout& layout,
                    const TrainShape& shape,
                    std::int64_t stage) {
  const StageWeights weights = stage_weights(model, layout, stage);
  const double tokens = as_double(shape.seq * shape.micro_batch) / as_double(layout.cp);
  const double tp = as_double(layout.tp);
  Ledger ledger;
  ledger.weights = sharded(weights, layout, layout.zero >= Zero::Weights, shape.states.weight);
  ledger.gradients =
      sharded(weights, layout, layout.zero >= Zero::Gradients, shape.states.gradient);
  ledger.optimizer =
      sharded(weights, layout, layout.zero >= Zero::Optimizer, shape.states.optimizer());

  const double layers = as_double(stage_layers(model, layout, stage));
  const double dense = as_double(dense_stage_layers(model, layout, stage));
  const double in_flight = layers_in_flight(model, layout, shape, stage);
  if (shape.recompute == Recompute::Full) {
    const LayerBytes whole = layer_bytes(model, layout, shape, Recompute::None);
    const double input = 2 * tokens * as_double(model.hidden) /
                         (layout.sequence_parallel == SequenceParallel::On ? tp : 1);
    ledger.activations = in_flight * input / as_double(shape.recompute_every);
    ledger.recompute_working_set =
        as_double(shape.recompute_every) * mean_layer_bytes(whole, dense, layers);
  } else {
    const LayerBytes kept = layer_bytes(model, layout, shape, shape.recompute);
    ledger.activations = in_flight * mean_layer_bytes(kept, dense, layers);
    if (shape.recompute == Recompute::Selective) {
      const LayerBytes whole = layer_bytes(model, layout, shape, Recompute::None);
      ledger.recompute_working_set = whole.dense - kept.dense;
    }
  }
  if (stage + 1 == layout.pp)
    ledger.head = 6 * tokens * as_double(model.vocabulary) / tp;
  ledger.communication = communication_bytes(model, layout, shape);
  ledger.reserve = kFrameworkReserve;
  return ledger;
}

Ledger worst_train_ledger(const ModelSpec& model, const Layout& layout, const TrainShape& shape) {
  // Stage 0 has the embedding and the most micro-batches, the last the head; where the first layers
  // are dense, the first stage without them may hold the most.
  Ledger worst = train_ledger(model, layout, shape, 0);
  const auto consider = [&](std::int64_t stage) {
    const Ledger ledger = train_ledger(model, layout, shape, stage);
    if (ledger.total() > worst.total())
      worst = ledger;
  };
  if (layout.pp > 1)
    consider(layout.pp - 1);
  if (const std::int64_t stage = first_uniform_stage(model, layout); stage > 0)
    consider(stage);
  return worst;
}

double layer_state_bytes(const ModelSpec& model, const Layout& layout, const TrainShape& shape) {
  StageWeights weights = stage_weights(model, layout, 0);
  weights.embedding_and_head = 0;
  return sharded(weights, layout, layout.zero >= Zero::Weights, shape.states.weight) +
         sharded(weights, layout, layout.zero >= Zero::Gradients, shape.states.gradient) +
         sharded(weights, layout, layout.zero >= Zero::Optimizer, shape.states.optimizer());
}

double kv_bytes_per_token(const ModelSpec& model, const Layout& layout, double bytes) {
  const double layers = as_double(stage_layers(model, layout, 0));
  if (model.latent)
    return layers * as_double(model.latent->kv_lora_rank + model.latent->qk_rope_dim) * bytes;
  const double heads = std::max(1.0, as_double(model.kv_heads) / as_double(layout.tp));
  return layers * heads * as_double(model.head_dim + model.value_dim()) * bytes;
}

Ledger inference_ledger(const ModelSpec& model, const Layout& layout, const InferenceShape& shape) {
  Layout replica = layout;
  replica.zero = Zero::None;
  double most = 0;
  for (const std::int64_t stage : {std::int64_t{0}, layout.pp - 1})
    most = std::max(most, stage_weights(model, replica, stage).total());
  Ledger ledger;
  ledger.weights = most * shape.weight_bytes;
  ledger.kv_cache = shape.cached_tokens * kv_bytes_per_token(model, layout, shape.kv_bytes);
  TrainShape forward;
  forward.seq = 1;
  const LayerBytes layer = layer_bytes(model, layout, forward, Recompute::None);
  ledger.activations = shape.batch_tokens * std::max(layer.dense, layer.experts);
  ledger.head = shape.logit_rows * as_double(model.vocabulary) / as_double(layout.tp) * 6;
  ledger.reserve = kFrameworkReserve;
  return ledger;
}

PlacedLedger place(const Ledger& trainer, TrainerState state) {
  PlacedLedger placed{trainer, {}};
  if (state == TrainerState::Active)
    return placed;
  placed.host.optimizer = trainer.optimizer;
  placed.device.optimizer = 0;
  if (state == TrainerState::Asleep) {
    placed.host.weights = trainer.weights;
    placed.device = {};
    placed.device.reserve = trainer.reserve;
  }
  return placed;
}

PlacedLedger place(const Ledger& engine, EngineState state) {
  PlacedLedger placed{engine, {}};
  if (state == EngineState::Active)
    return placed;
  placed.device = {};
  placed.device.reserve = engine.reserve;
  if (state == EngineState::Asleep)
    placed.host.weights = engine.weights;
  return placed;
}

}  // namespace temper::sim_hw
