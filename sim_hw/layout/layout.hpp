// The layout of a model's training over devices, and the shape of one training step. Memory, cost
// and search share these values. stages.hpp says which layers a stage has,
// sim_hw/parallel/layout_check.hpp whether a layout can run.
//
// With `vpp` > 1 a stage is split into that many chunks. The experts of one replica are placed on
// ep * expert_tp devices taken from the tp * cp * dp devices of a stage ("folding"): tp = 8, ep =
// 32, expert_tp = 1 keeps attention tensor-parallel and experts whole on 32 devices. Values only;
// no threads.
#pragma once

#include "sim_hw/layout/mechanisms.hpp"
#include "sim_hw/model/adapter.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace temper::sim_hw {

/// A layer with a dense MLP, or one with routed experts.
enum class LayerKind { Dense, Experts };
/// State that ZeRO shards over the data-parallel devices; each level includes the one before it.
enum class Zero { None, Optimizer, Gradients, Weights };
enum class Recompute { None, Selective, Full };
/// Unfused attention stores and moves the seq x seq matrices; fused attention recomputes them on
/// chip.
enum class AttentionKernel { Fused, Unfused };
enum class SequenceParallel { Off, On };
/// Whether dispatch and combine of one micro-batch overlap the compute of another.
enum class ExpertOverlap { Off, On };
/// FP16 needs loss scaling, and unscaling of gradients before the optimizer step.
enum class NumberFormat { Bf16, Fp16 };

/// Assignment of layers to pipeline stages.
enum class LayerBalance {
  LastShort,  ///< Equal counts; the last stage, with MTP modules and heads, has the remainder.
  Even,       ///< As even as whole layers allow, whatever else a stage holds.
  /// Layers, MTP modules and heads together as even as whole layers allow, weighted by their matrix
  /// products. On a virtual pipeline the output head ends the stage before the last, and the MTP
  /// modules are the last chunk of the last stage; stage 0 embeds for both.
  Counted,
};

/// Treatment of the saved tensors of a layer: one bit per tensor, in the order of saved_tensors().
/// Tensors with neither bit set are kept.
struct TensorFates {
  std::uint32_t recomputed = 0;
  std::uint32_t swapped = 0;  ///< Moved to host memory and back.

  bool operator==(const TensorFates&) const = default;
};
/// What a trainer does with the tensors that its forward pass saves.
enum class ActivationPolicy {
  Full,       ///< Keeps the input of each layer and recomputes the rest.
  Selective,  ///< Recomputes chosen tensors, as few as memory requires.
  Swap,       ///< Moves chosen tensors to host memory and back, as few as memory requires.
  Auto,       ///< Chooses between both for each tensor, or Full if that is faster.
};

/// Treatment of every layer of a kind, as choose_activations() decides it.
struct ActivationPlan {
  TensorFates dense{};
  TensorFates experts{};

  bool operator==(const ActivationPlan&) const = default;
};

/// Bytes per parameter of each state.
struct StateBytes {
  double weight = 2;
  double gradient = 4;
  double master =
      4;  ///< FP32 copy of the weights; 0 if the optimizer updates the weights themselves.
  double moments = 8;  ///< Both moments.

  double optimizer() const { return master + moments; }
  /// 16-bit weights, FP32 gradients, master weights and moments: 18 bytes (2205.05198).
  static StateBytes mixed() { return {}; }
  /// Everything in bf16: 8 bytes.
  static StateBytes bf16() { return {2, 2, 0, 4}; }
};

struct Layout {
  std::int64_t tp = 1;         ///< Tensor parallelism: attention, dense MLP, embedding, head.
  std::int64_t pp = 1;         ///< Pipeline stages.
  std::int64_t vpp = 1;        ///< Chunks per stage.
  std::int64_t ep = 1;         ///< Expert parallelism: devices that share the experts.
  std::int64_t expert_tp = 1;  ///< Tensor parallelism of one expert.
  std::int64_t cp = 1;         ///< Context parallelism: splits the sequence.
  std::int64_t dp = 1;
  std::int64_t redundant_experts = 0;  ///< Further copies of experts in each layer; inference only.
  Zero zero = Zero::None;
  SequenceParallel sequence_parallel = SequenceParallel::Off;
  LayerBalance layer_balance = LayerBalance::LastShort;

  std::int64_t devices() const { return tp * pp * cp * dp; }
  /// Devices of one stage.
  std::int64_t stage_devices() const { return tp * cp * dp; }
  /// Replicas of each expert, over which its gradients are reduced.
  std::int64_t expert_dp() const { return stage_devices() / (ep * expert_tp); }
};

struct TrainShape {
  std::int64_t micro_batch = 1;   ///< Sequences per micro-batch.
  std::int64_t global_batch = 1;  ///< Sequences per step.
  std::int64_t seq = 0;
  Recompute recompute = Recompute::None;
  std::int64_t recompute_every = 1;  ///< Layers per checkpoint with full recompute.
  AttentionKernel attention = AttentionKernel::Fused;
  NumberFormat format = NumberFormat::Bf16;
  double dropout = 0;           ///< 0 stores no masks.
  double expert_imbalance = 1;  ///< Tokens of the busiest expert device over the mean.
  /// 1 + the time that replicas wait for the one with the longest sequences, in units of the
  /// attention of whole sequences.
  double attention_imbalance = 1;
  ExpertOverlap expert_overlap = ExpertOverlap::Off;
  Mechanisms mechanisms{};
  ActivationPlan activations{};  ///< Applies to the tensors that `recompute` keeps.
  StateBytes states = StateBytes::mixed();
  /// What is trained, with these states, beside frozen weights of `states.weight` bytes. Empty if
  /// all weights are trained.
  std::optional<Adapter> adapter{};

  /// Micro-batches of each data-parallel replica.
  std::int64_t micro_batches(const Layout& layout) const {
    return global_batch / (layout.dp * micro_batch);
  }
};

/// Dropout and unfused attention for GPT-era models (layer norm and GELU, 2205.05198); neither for
/// others.
inline TrainShape default_shape(const ModelSpec& model) {
  TrainShape shape;
  if (model.layer_norm && model.activation == Activation::Gelu) {
    shape.attention = AttentionKernel::Unfused;
    shape.dropout = 0.1;
    shape.format = NumberFormat::Fp16;
  }
  return shape;
}

}  // namespace temper::sim_hw

template <>
struct temper::EnumNames<temper::sim_hw::Recompute> {
  static constexpr std::array<std::pair<sim_hw::Recompute, std::string_view>, 3> value{
      {{sim_hw::Recompute::None, "none"},
       {sim_hw::Recompute::Selective, "selective"},
       {sim_hw::Recompute::Full, "full"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::ActivationPolicy> {
  using E = temper::sim_hw::ActivationPolicy;
  static constexpr std::array<std::pair<E, std::string_view>, 4> value{
      {{E::Full, "full"}, {E::Selective, "selective"}, {E::Swap, "swap"}, {E::Auto, "auto"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::LayerBalance> {
  using E = sim_hw::LayerBalance;
  static constexpr std::array<std::pair<E, std::string_view>, 3> value{
      {{E::LastShort, "last_short"}, {E::Even, "even"}, {E::Counted, "counted"}}};
};
