// Memory of a device by purpose, for each role and state.
//
// Equations (per device, on a stage with L/p layers, s tokens per sequence, b sequences):
//   weights    = parameters * bytes, / dp with ZeRO "weights"; gradients and optimizer likewise.
//     With an adapter, gradients and optimizer are those of its parameters alone
//   activations = bytes per token and layer * s b / cp * layers in flight; a stage i of p holds
//     min(p - i, m) micro-batches, or with v chunks min(2 (p - i - 1) + (v - 1) p + 1, m v) chunks
//     of L / (p v) layers: on stage 0 that is L (1 + (p - 1) / (p v)) layers (2205.05198,
//     section 4.2.3)
//     with AdaptivePipe a forward pass that overlaps a backward pass needs one chunk more; DualPipe
//     keeps p + 1 micro-batches of L/p layers, half of its stage i and half of stage p - 1 - i, and
//     the weights and gradients of both, with twice as many replicas
//   selective recompute and swap keep the tensors that the plan keeps, plus one layer of recomputed
//     tensors and two layers of swapped ones
//   full recompute keeps 2 h per token and checkpoint, and the working set of one checkpoint
//   head       = FP32 logits and their 16-bit gradient on the last stage, 6 s b V / t
//   KV cache   = layers * tokens * 2 (K and V) kv_heads / tp * head_dim * 2 bytes; latent attention
//     keeps (rank + rope) * 2 bytes, whole on every tensor-parallel device
// Constants: a reserve of 1 GiB for context, libraries and allocator rounding (assumed).
// Range: steady state of a step; no fragmentation beyond the reserve. Doubles are bytes. Values
// only; nothing allocates.
#pragma once

#include "sim_hw/layout/layout.hpp"
#include "sim_hw/memory/weights.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace temper::sim_hw {

inline constexpr double kFrameworkReserve = 1073741824.0;

/// Bytes of one device, or of its share of host memory.
struct Ledger {
  double weights = 0;
  double older_weights = 0;  ///< Versions whose responses have not ended.
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;            ///< Kept from the forward to the backward pass.
  double recompute_working_set = 0;  ///< For the checkpoint being recomputed.
  double head = 0;                   ///< Logits and their gradient.
  double kv_cache = 0;
  double tensors = 0;        ///< Of responses, for the trainer.
  double communication = 0;  ///< Gathered inputs, dispatched tokens, stage boundaries.
  double reserve = 0;

  std::array<std::pair<std::string_view, double>, 11> entries() const;
  double total() const;
};

/// Peak of stage `stage` of a trainer, between forward and backward.
Ledger train_ledger(const ModelSpec& model,
                    const Layout& layout,
                    const TrainShape& shape,
                    std::int64_t stage);
/// The ledger of the stage that holds the most.
Ledger worst_train_ledger(const ModelSpec& model, const Layout& layout, const TrainShape& shape);

/// Layer parameters and optimizer of stage 0, without embedding and head, as 2205.05198 counts
/// them.
double layer_state_bytes(const ModelSpec& model, const Layout& layout, const TrainShape& shape);

/// Layers whose activations stage `stage` holds at once; fractional with chunks.
double layers_in_flight(const ModelSpec& model,
                        const Layout& layout,
                        const TrainShape& shape,
                        std::int64_t stage);

/// KV cache bytes of one token in all layers of a stage on one device.
double kv_bytes_per_token(const ModelSpec& model, const Layout& layout, double bytes = 2);

struct InferenceShape {
  double cached_tokens = 0;  ///< KV cache of one model replica.
  double batch_tokens = 0;   ///< In the largest forward pass.
  double logit_rows = 0;     ///< FP32 rows over the vocabulary held at once.
  double weight_bytes = 2;
  double kv_bytes = 2;
};
/// A rollout engine or a reference: weights, cache, one layer's working set, logits.
Ledger inference_ledger(const ModelSpec& model, const Layout& layout, const InferenceShape& shape);

enum class TrainerState {
  Active,
  OptimizerOnHost,  ///< Steps with its optimizer states in host memory.
  Asleep,           ///< Weights and optimizer in host memory; gradients and activations dropped.
};
enum class EngineState {
  Active,
  Asleep,     ///< Weights in host memory; cache dropped.
  Discarded,  ///< Weights and cache dropped; the trainer sends the weights again.
};
/// Bytes of a role on the device and in host memory, per device.
struct PlacedLedger {
  Ledger device;
  Ledger host;
};
PlacedLedger place(const Ledger& trainer, TrainerState state);
PlacedLedger place(const Ledger& engine, EngineState state);

}  // namespace temper::sim_hw
