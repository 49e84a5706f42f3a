// Visits the operators of a model's layers, forward and backward, on one device. Templates over the
// sink, so that a sum costs only the additions. Equations: sim_hw/operators/operators.hpp.
//
// A checkpointed layer stops its recomputation at the last tensor that the backward pass needs, the
// input of the down projection (PyTorch's early stop), so that GEMM does not run again.
//
// Assumed: an engine with fused QKV and gate-up projections, fused norms, and everything else op by
// op, like the measured PyTorch engine. `tokens` are those of this device; it receives tokens x
// top_k x its share of the experts routed copies.
#pragma once

#include "sim_hw/steps/adapter_products.hpp"
#include "sim_hw/steps/step_cost.hpp"
#include "sim_hw/steps/step_model.hpp"

namespace temper::sim_hw {

/// Work of the layers, besides the core of attention.
struct LayerWork {
  double tokens = 0;
  double routed_tokens = 0;      ///< Tokens whose copies may reach this device's experts.
  double reachable_experts = 0;  ///< Experts of this device that these tokens may reach.
  bool absorbed = false;         ///< Latent attention in its absorbed (decode) form.
};

namespace detail {

/// Heads and routers stay in BF16, and so does the absorbed part of latent attention.
inline MatrixFormat format_of(const Device& d, Op op) {
  const bool plain = op == Op::Head || op == Op::Router || op == Op::KeyValueUp;
  return plain ? MatrixFormat{} : d.linear;
}

template <class Sink>
void visit_gemm(const Device& d, Op op, Pass pass, double count, OpSizes s, Sink& sink) {
  const double seconds = pass == Pass::Backward
                             ? gemm_backward_seconds(d, Heat::Sustained, s.a, s.b, s.c)
                             : gemm_seconds(d, Heat::Sustained, s.a, s.b, s.c, format_of(d, op));
  sink(op, pass, count, seconds, s);
}

template <class Sink>
void visit_projections(
    const Device& d, const StepModel& m, const LayerWork& w, Pass pass, Sink& sink) {
  const double t = w.tokens;
  const AttentionShape& a = m.attention;
  if (m.latent) {
    visit_gemm(d, Op::QueryDown, pass, m.layers, {t, m.q_rank, m.hidden}, sink);
    visit_gemm(d, Op::QueryUp, pass, m.layers, {t, a.heads * a.key_dim, m.q_rank}, sink);
    visit_gemm(d, Op::KeyValueDown, pass, m.layers, {t, m.kv_rank + m.rope, m.hidden}, sink);
    visit_gemm(
        d, Op::KeyValueUp, pass, m.layers, {t, a.heads * (m.nope + a.value_dim), m.kv_rank}, sink);
  } else {
    visit_gemm(d, Op::QkvProjection, pass, m.layers, {t, m.qkv_width(), m.hidden}, sink);
  }
  visit_gemm(d, Op::OutputProjection, pass, m.layers, {t, m.hidden, a.heads * a.value_dim}, sink);
}

/// Routed tokens that reach this device.
inline double routed_copies(const StepModel& m, const LayerWork& w) {
  return w.routed_tokens * m.top_k * m.experts / m.expert_slots;
}
inline Routing routing_of(const StepModel& m, const LayerWork& w) {
  return balanced_routing(
      w.reachable_experts, m.top_k * m.experts / m.expert_slots, w.routed_tokens);
}

/// The products of adapters beside frozen weights.
template <class Sink>
void visit_adapters(const Device& d,
                    const StepModel& m,
                    const AdapterShapes& adapters,
                    const LayerWork& w,
                    Pass pass,
                    Sink& sink) {
  const auto use = [&](double count, const ProductSeconds& seconds, OpSizes sizes) {
    sink(Op::Adapters,
         pass,
         count,
         pass == Pass::Backward ? seconds.backward : seconds.forward,
         sizes);
  };
  const auto each = [&](double count, const LowRankLayers& layers) {
    for (const LowRank& l : layers.all()) {
      ProductSeconds seconds = low_rank_seconds(d, adapters.rank, l, w.tokens);
      if (w.absorbed && l.target == AdapterTarget::KeyValueUp)
        seconds.forward = absorbed_low_rank_seconds(d, adapters.rank, l, w.tokens, m.attention);
      use(count, seconds, {w.tokens, l.out, l.in});
    }
  };
  each(m.layers, adapters.attention);
  if (m.dense_layers > 0)
    each(m.dense_layers, adapters.dense);
  if (m.moe_layers == 0)
    return;
  each(m.moe_layers, adapters.shared);
  const Routing routing = routing_of(m, w);
  const double copies = routed_copies(m, w);
  if (!adapters.expert.all().empty()) {
    use(m.moe_layers,
        grouped_low_rank_seconds(d, adapters, routing, copies),
        {copies, routing.experts, routing.tiles});
  }
}

template <class Sink>
void visit_mlp(const Device& d, const StepModel& m, const LayerWork& w, Pass pass, Sink& sink) {
  const double t = w.tokens;
  const double wide = m.mlp_matrices - 1;
  if (m.dense_layers > 0) {
    visit_gemm(d, Op::GateUp, pass, m.dense_layers, {t, wide * m.ffn, m.hidden}, sink);
    if (pass != Pass::Recompute)
      visit_gemm(d, Op::Down, pass, m.dense_layers, {t, m.hidden, m.ffn}, sink);
  }
  if (m.moe_layers == 0)
    return;
  visit_gemm(d, Op::Router, pass, m.moe_layers, {t, m.all_experts, m.hidden}, sink);
  if (m.shared_ffn > 0) {
    visit_gemm(d, Op::SharedExperts, pass, m.moe_layers, {t, wide * m.shared_ffn, m.hidden}, sink);
    visit_gemm(d, Op::SharedExperts, pass, m.moe_layers, {t, m.hidden, m.shared_ffn}, sink);
  }
  const double copies = routed_copies(m, w);
  const Routing routing = routing_of(m, w);
  double seconds = grouped_seconds(d, {m.hidden, m.expert_ffn}, routing, copies);
  if (pass == Pass::Backward)
    seconds *= 2 * d.k.matmul_backward;
  sink(Op::Experts, pass, m.moe_layers, seconds, {copies, routing.experts, routing.tiles});
}

/// Bytes that the elementwise kernels of one layer move per token.
inline double elementwise_bytes(const Device& d, const StepModel& m, Pass pass) {
  const AttentionShape& a = m.attention;
  const double rotated = (a.heads + a.kv_heads) * a.key_dim;
  // Two residual additions of 2 reads and 1 write. Backward, a norm reads x and dy and writes dx,
  // and the gated activation reads and writes each of its parts once more.
  const bool backward = pass == Pass::Backward;
  const double norm = backward ? 4 * d.k.norm_bytes : d.k.norm_bytes;
  return 2 * norm * m.hidden + 12 * m.hidden + d.k.rotary_bytes * rotated +
         (m.qk_norm ? norm * rotated : 0);
}
/// Eager SwiGLU moves 26 bytes per element backward and 10 forward: silu' reads x and dy and writes
/// dx (6), the product reads and writes twice (12), the halves are concatenated (8).
inline constexpr double kActivationBackward = 2.6;
inline double activation_bytes(const Device& d, Pass pass) {
  return (pass == Pass::Backward ? kActivationBackward : 1.0) * d.k.activation_bytes;
}

template <class Sink>
void visit_elementwise(
    const Device& d, const StepModel& m, const LayerWork& w, Pass pass, Sink& sink) {
  const double kernels =
      (d.k.layer_kernels + (m.qk_norm ? 2 : 0)) * (pass == Pass::Backward ? 2 : 1);
  const double dense = m.dense_layers / m.layers * m.ffn + m.moe_layers / m.layers * m.shared_ffn;
  const double bytes =
      w.tokens * (elementwise_bytes(d, m, pass) + activation_bytes(d, pass) * dense);
  sink(
      Op::Elementwise, pass, m.layers, elementwise_seconds(d, kernels, bytes), {kernels, bytes, 0});
}

}  // namespace detail

/// All operators of every layer except the core of attention.
template <class Sink>
void visit_layers(const Device& d, const StepModel& m, const LayerWork& w, Pass pass, Sink& sink) {
  detail::visit_projections(d, m, w, pass, sink);
  detail::visit_mlp(d, m, w, pass, sink);
  if (m.adapter)
    detail::visit_adapters(d, m, *m.adapter, w, pass, sink);
  detail::visit_elementwise(d, m, w, pass, sink);
}

/// Causal self-attention over `seq` tokens of `batch` sequences, in every layer.
template <class Sink>
void visit_attention(
    const Device& d, const StepModel& m, double batch, double seq, Pass pass, Sink& sink) {
  const double seconds = pass == Pass::Backward
                             ? attention_backward_seconds(d, m.attention, batch, seq)
                             : attention_prefill_seconds(d, m.attention, batch, seq);
  sink(Op::Attention, pass, m.layers, seconds, {batch, seq, m.attention.heads});
}

}  // namespace temper::sim_hw
