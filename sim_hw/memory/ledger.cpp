#include "sim_hw/memory/ledger.hpp"

#include "sim_hw/layout/stages.hpp"
#include "sim_hw/memory/activations.hpp"
#include "sim_hw/model/numbers.hpp"

#include <algorithm>

namespace temper::sim_hw {

namespace {

/// Bytes of a state's parameters, sharded by ZeRO or not, over `copies` times the replicas.
double sharded(const StageParameters& weights,
               const Layout& layout,
               bool sharding,
               double bytes,
               double copies = 1) {
  if (!sharding)
    return weights.total() * bytes;
  return (weights.dense() / (copies * as_double(layout.dp * layout.cp)) +
          weights.experts / (copies * as_double(layout.expert_dp()))) *
         bytes;
}

struct LayerBytes {
  double dense = 0;
  double experts = 0;
};

/// Kept per layer and micro-batch, without the dropped tensors of each kind.
LayerBytes layer_bytes(const ModelSpec& model,
                       const Layout& layout,
                       const TrainShape& shape,
                       Recompute recompute,
                       std::uint32_t dense_dropped = 0,
                       std::uint32_t experts_dropped = 0) {
  const double tokens = as_double(shape.seq * shape.micro_batch) / as_double(layout.cp);
  LayerBytes bytes;
  bytes.dense = tokens * saved_tensors(model, shape, LayerKind::Dense)
                             .bytes_per_token(layout, shape, recompute, dense_dropped);
  bytes.experts = bytes.dense;
  if (model.moe) {
    bytes.experts = tokens * saved_tensors(model, shape, LayerKind::Experts)
                                 .bytes_per_token(layout, shape, recompute, experts_dropped);
  }
  return bytes;
}

/// Bytes kept under the shape's activation plan.
LayerBytes planned_bytes(const ModelSpec& model, const Layout& layout, const TrainShape& shape) {
  const auto& [dense, experts] = shape.activations;
  return layer_bytes(model,
                     layout,
                     shape,
                     shape.recompute,
                     dense.recomputed | dense.swapped,
                     experts.recomputed | experts.swapped);
}

/// Bytes of the dropped tensors of the layer in progress, and for swapped tensors also of the layer
/// in transit.
double planned_working_set(const ModelSpec& model,
                           const Layout& layout,
                           const TrainShape& shape,
                           const LayerBytes& all,
                           const LayerBytes& kept) {
  const auto& [dense, experts] = shape.activations;
  double bytes = std::max(all.dense - kept.dense, all.experts - kept.experts);
  if ((dense.swapped | experts.swapped) != 0) {
    const LayerBytes stay =
        layer_bytes(model, layout, shape, shape.recompute, dense.swapped, experts.swapped);
    bytes += std::max(all.dense - stay.dense, all.experts - stay.experts);
  }
  return bytes;
}

/// Bytes that a layer keeps, and its working set; the same for every stage.
struct ActivationBytes {
  LayerBytes kept;   ///< Per micro-batch; 0 with full recompute.
  LayerBytes whole;  ///< Layers of one checkpoint, with full recompute.
  double working_set = 0;
};

ActivationBytes activation_bytes(const ModelSpec& model,
                                 const Layout& layout,
                                 const TrainShape& shape) {
  ActivationBytes out;
  if (shape.recompute == Recompute::Full) {
    out.whole = layer_bytes(model, layout, shape, Recompute::None);
    return out;
  }
  const LayerBytes all = layer_bytes(model, layout, shape, shape.recompute);
  if (shape.recompute == Recompute::Selective)
    out.working_set = layer_bytes(model, layout, shape, Recompute::None).dense - all.dense;
  out.kept = all;
  if (shape.activations != ActivationPlan{}) {
    out.kept = planned_bytes(model, layout, shape);
    out.working_set += planned_working_set(model, layout, shape, all, out.kept);
  }
  return out;
}

/// Mean over the layer mix of `stage`, per layer.
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
    bytes += 4 * plane / tp;  // Send and receive buffers, forward and backward.
  if (layout.cp > 1)          // Double-buffered key and value blocks and their gradients.
    bytes += 4 * 2 * tokens * 2 * as_double(model.kv_heads * model.head_dim) / tp;
  return bytes;
}

Ledger stage_ledger(const ModelSpec& model,
                    const Layout& layout,
                    const TrainShape& shape,
                    const ActivationBytes& bytes,
                    std::int64_t stage) {
  const double copies = as_double(weight_copies(shape));
  const std::int64_t mirror = mirrored_stage(layout, stage);
  const StageParameters weights = device_parameters(model, layout, shape, stage);
  const StageParameters trained = trained_parameters(model, layout, shape, stage);
  const double tokens = as_double(shape.seq * shape.micro_batch) / as_double(layout.cp);
  const double tp = as_double(layout.tp);
  Ledger ledger;
  const auto state = [&](const StageParameters& of, Zero since, double each) {
    return sharded(of, layout, layout.zero >= since, each, copies);
  };
  ledger.weights = state(weights, Zero::Weights, shape.states.weight);
  if (shape.adapter)
    ledger.weights += state(trained, Zero::Weights, shape.states.weight);
  ledger.gradients = state(trained, Zero::Gradients, shape.states.gradient);
  ledger.optimizer = state(trained, Zero::Optimizer, shape.states.optimizer());

  double layers = as_double(stage_layers(model, layout, stage));
  double dense = as_double(dense_stage_layers(model, layout, stage));
  if (copies > 1) {
    layers += as_double(stage_layers(model, layout, mirror));
    dense += as_double(dense_stage_layers(model, layout, mirror));
  }
  const double in_flight = layers_in_flight(model, layout, shape, stage);
  if (shape.recompute == Recompute::Full) {
    const double input = 2 * tokens * as_double(model.hidden) /
                         (layout.sequence_parallel == SequenceParallel::On ? tp : 1);
    ledger.activations = in_flight * input / as_double(shape.recompute_every);
    ledger.recompute_working_set =
        as_double(shape.recompute_every) * mean_layer_bytes(bytes.whole, dense, layers);
  } else {
    ledger.activations = in_flight * mean_layer_bytes(bytes.kept, dense, layers);
    ledger.recompute_working_set = bytes.working_set;
  }
  const std::int64_t heads = stage_modules(model, layout, stage).heads +
                             (copies > 1 ? stage_modules(model, layout, mirror).heads : 0);
  if (heads > 0)
    ledger.head = 6 * tokens * as_double(model.vocabulary) / tp;
  ledger.communication = communication_bytes(model, layout, shape);
  ledger.reserve = kFrameworkReserve;
  return ledger;
}

}  // namespace

std::array<std::pair<std::string_view, double>, 11> Ledger::entries() const {
  return {{{"weights", weights},
           {"older weights", older_weights},
           {"gradients", gradients},
           {"optimizer", optimizer},
           {"activations", activations},
           {"recompute working set", recompute_working_set},
           {"head", head},
           {"KV cache", kv_cache},
           {"tensors of responses", tensors},
           {"communication", communication},
           {"reserve", reserve}}};
}

double Ledger::total() const {
  return weights + older_weights + gradients + optimizer + activations + recompute_working_set +
         head + kv_cache + tensors + communication + reserve;
}

double layers_in_flight(const ModelSpec& model,
                        const Layout& layout,
                        const TrainShape& shape,
                        std::int64_t stage) {
  const double layers = as_double(stage_layers(model, layout, stage));
  const std::int64_t micro_batches = std::max<std::int64_t>(1, shape.micro_batches(layout));
  const PipelineSchedule schedule = shape.mechanisms.schedule;
  if (schedule == PipelineSchedule::DualPipe) {
    const double both =
        layers + as_double(stage_layers(model, layout, mirrored_stage(layout, stage)));
    return both * as_double(std::min(layout.pp + 1, micro_batches)) / 2;
  }
  const std::int64_t beside = schedule == PipelineSchedule::AdaptivePipe ? 1 : 0;
  if (layout.vpp == 1)
    return layers * as_double(std::min(layout.pp - stage, micro_batches));
  const std::int64_t chunks =
      std::min(2 * (layout.pp - stage - 1) + (layout.vpp - 1) * layout.pp + 1 + beside,
               micro_batches * layout.vpp);
  return layers * as_double(chunks) / as_double(layout.vpp);
}

Ledger train_ledger(const ModelSpec& model,
                    const Layout& layout,
                    const TrainShape& shape,
                    std::int64_t stage) {
  return stage_ledger(model, layout, shape, activation_bytes(model, layout, shape), stage);
}

Ledger worst_train_ledger(const ModelSpec& model, const Layout& layout, const TrainShape& shape) {
  // Stage 0 has the embedding and the most micro-batches, the last stage the head. If the first
  // layers are dense, the first stage without dense layers may hold the most.
  const ActivationBytes bytes = activation_bytes(model, layout, shape);
  Ledger worst = stage_ledger(model, layout, shape, bytes, 0);
  const auto consider = [&](std::int64_t stage) {
    const Ledger ledger = stage_ledger(model, layout, shape, bytes, stage);
    if (ledger.total() > worst.total())
      worst = ledger;
  };
  if (layout.pp > 1)
    consider(layout.pp - 1);
  if (layout.layer_balance == LayerBalance::Counted && layout.pp > 2)
    consider(layout.pp - 2);
  if (weight_copies(shape) > 1)  // Neither of its stages gave up layers for the head.
    consider(layout.pp / 2);
  if (const std::int64_t stage = first_uniform_stage(model, layout); stage > 0)
    consider(stage);
  return worst;
}

double layer_state_bytes(const ModelSpec& model, const Layout& layout, const TrainShape& shape) {
  StageParameters weights = device_parameters(model, layout, shape, 0);
  weights.embedding_and_head = 0;
  const double copies = as_double(weight_copies(shape));
  const auto state = [&](Zero since, double bytes) {
    return sharded(weights, layout, layout.zero >= since, bytes, copies);
  };
  return state(Zero::Weights, shape.states.weight) + state(Zero::Gradients, shape.states.gradient) +
         state(Zero::Optimizer, shape.states.optimizer());
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
    most = std::max(most, stage_parameters(model, replica, stage).total());
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
