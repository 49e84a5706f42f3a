// Cost of one operator on one device, in seconds. Two bytes per element unless stated otherwise.
//
// GEMM y[m,n] = x[m,k] W[n,k]^T:
//   t = latency(k) + (compute^4 + traffic^4)^(1/4) + 2mn / bandwidth
//   latency(k) = matmul_latency + matmul_depth_latency min(k, 4096) / 4096   filling the pipeline
//   compute = 2 rows n k cost,  rows = m rounded up to tiles of 64
//   traffic = 2 (mk + nk) / bandwidth
//   cost = boost + (sustained - boost) F / (F + matmul_boost_flops),  F = 2mnk: it rises from the
//     boost rate to the sustained one with the work of the kernel (power limit)
//   inside a step the device is hot: cost = sustained. Writing the output does not overlap.
// Attention over many queries, causal: scores = batch heads seq^2 / 2
//   t = latency + scores ((2 dk + 2 dv) cost + softmax) + traffic + (seq / 128) block latency
// Attention of one query per sequence: t = latency + depth head_dim + KV bytes / decode bandwidth;
//   with latent attention the products matter too: t = latency + max(bytes, FLOP) terms.
// Grouped GEMM of E experts over T tokens, top k with popularity proportional to rank^-zipf:
//   touched experts A = sum 1 - (1 - pi)^T, tiles of 128 rows = sum max(P, T pi / 128 + P / 2)
//   t = routing_latency + (weights^2 + compute^2)^(1/2)
//     + T k (routing_bytes hidden + activation) / bandwidth
//   pi: inclusion probability of an expert for one token, 1 - exp(-lambda p) with sum pi = k
//   (without replacement). Tile counts are smoothed over loads: up to 28 % fewer tiles are filled
//   if every expert has just less than a whole number of tiles.
// Number formats (formats.hpp): compute over the format's speed, its bytes in the traffic, and a
//   kernel that quantizes activations. Heads, routers and attention compute in BF16.
// Elementwise: t = passes (kernels kernel_latency + bytes / bandwidth); passes = 1 where fused.
//
// Assumed: bf16, vendor library kernels, no overlap between kernels of one stream. Valid for m, n,
// k >= 1; fitted for m <= 16384, contexts <= 32768, head sizes 64 to 128. Tiles of 64 rows are
// assumed (libraries choose among 64 to 256), because the measured row counts are powers of two.
// Constants: sim_hw/hardware/constants.hpp, with their sources beside the values. Pure functions;
// no allocation.
#pragma once

#include "sim_hw/operators/device.hpp"

#include <algorithm>
#include <cmath>

namespace temper::sim_hw {

/// Isolated: one kernel after a pause. Sustained: one of thousands in a step at the power limit.
enum class Heat { Isolated, Sustained };

inline double smooth_max4(double a, double b) {
  const double a2 = a * a;
  const double b2 = b * b;
  return std::sqrt(std::sqrt(a2 * a2 + b2 * b2));
}

/// Rows after rounding up to whole tiles.
inline double padded_rows(double m) {
  return 64 * std::ceil(m / 64);
}

inline double gemm_latency(const Device& d, double k) {
  return d.k.matmul_latency + d.k.matmul_depth_latency * std::min(k, 4096.0) / 4096.0;
}

/// Seconds per FLOP of a GEMM of this size.
inline double gemm_cost(const Device& d, Heat heat, double m, double n, double k) {
  if (heat == Heat::Sustained)
    return d.sustained_cost;
  const double flops = 2 * m * n * k;
  return d.boost_cost +
         (d.sustained_cost - d.boost_cost) * flops / (flops + d.k.matmul_boost_flops);
}

/// Quantizes `elements` activations before a product: a launch, a read and a write.
inline double convert_seconds(const Device& d, const MatrixFormat& f, double elements) {
  return f.converts ? d.k.kernel_latency + kConvertBytes * elements / d.bandwidth : 0;
}

inline double gemm_seconds(
    const Device& d, Heat heat, double m, double n, double k, const MatrixFormat& f) {
  const double cost = gemm_cost(d, heat, m, n, k) / f.speed;
  const double compute = 2 * padded_rows(m) * n * k * cost;
  const double traffic = (f.activation_bytes * m * k + f.weight_bytes * n * k) / d.bandwidth;
  return gemm_latency(d, k) + convert_seconds(d, f, m * k) + smooth_max4(compute, traffic) +
         2 * m * n / d.bandwidth;
}
/// In the device's format of projections.
inline double gemm_seconds(const Device& d, Heat heat, double m, double n, double k) {
  return gemm_seconds(d, heat, m, n, k, d.linear);
}

/// Both GEMMs of the backward pass of y = x W^T: dx[m,k] = dy W and dW[n,k] = dy^T x.
inline double gemm_backward_seconds(const Device& d, Heat heat, double m, double n, double k) {
  return d.k.matmul_backward * (gemm_seconds(d, heat, m, k, n) + gemm_seconds(d, heat, n, k, m));
}

struct AttentionShape {
  double heads = 0;
  double kv_heads = 0;
  double key_dim = 0;    ///< For a query or key head.
  double value_dim = 0;  ///< For a value head.
};

/// Causal self-attention over `seq` tokens of each of `batch` sequences.
inline double attention_prefill_seconds(const Device& d,
                                        const AttentionShape& a,
                                        double batch,
                                        double seq) {
  const double scores = batch * a.heads * seq * seq / 2;
  const double flops = scores * 2 * (a.key_dim + a.value_dim);
  const double elements = batch * seq * (a.heads + a.kv_heads) * (a.key_dim + a.value_dim);
  return d.k.attention_latency + flops * d.attention_cost + scores * d.k.attention_softmax +
         2 * elements / d.bandwidth + seq / 128 * d.k.attention_block_latency;
}

inline double attention_backward_seconds(const Device& d,
                                         const AttentionShape& a,
                                         double batch,
                                         double seq) {
  return d.k.attention_backward * attention_prefill_seconds(d, a, batch, seq);
}

/// One query of each of `batch` sequences over `context` cached keys and values.
inline double attention_decode_seconds(const Device& d,
                                       const AttentionShape& a,
                                       double batch,
                                       double context) {
  const double bytes = d.kv_bytes * batch * context * a.kv_heads * (a.key_dim + a.value_dim);
  return d.k.attention_decode_latency + d.k.attention_decode_depth * a.key_dim +
         bytes / d.decode_bandwidth;
}

/// The same with absorbed latent attention: all `heads` read one latent of `latent` + `rope`.
inline double latent_decode_seconds(
    const Device& d, double heads, double latent, double rope, double batch, double context) {
  const double bytes = d.kv_bytes * batch * context * (latent + rope);
  const double flops = 2 * batch * context * heads * (2 * latent + rope);
  return d.k.attention_decode_latency + d.k.attention_decode_depth * 128 +
         smooth_max4(bytes / d.decode_bandwidth,
                     flops * d.attention_cost + batch * context * heads * d.k.attention_softmax);
}

/// `queries` new tokens of each sequence together, as a step that verifies drafts: keys and values
/// are read once, the products grow with the queries.
inline double attention_verify_seconds(
    const Device& d, const AttentionShape& a, double batch, double context, double queries) {
  const double one = attention_decode_seconds(d, a, batch, context);
  if (queries <= 1)
    return one;
  const double scores = batch * a.heads * queries * context;
  const double products = scores * 2 * (a.key_dim + a.value_dim) * d.attention_cost;
  return smooth_max4(one, products + scores * d.k.attention_softmax);
}

inline double elementwise_seconds(const Device& d, double kernels, double bytes) {
  return d.vector_passes * (kernels * d.k.kernel_latency + bytes / d.bandwidth);
}

/// Spread of T tokens over E experts: the experts touched and the 128-row tiles that they fill.
struct Routing {
  double experts = 0;
  double tiles = 0;
};

/// Routing with equally popular experts.
inline Routing balanced_routing(double experts, double top_k, double tokens) {
  const double reached = std::max(experts, top_k);
  const double pi = top_k / reached;
  const double hit = 1 - std::pow(1 - pi, tokens);
  return {reached * hit, reached * std::max(hit, tokens * pi / 128 + hit / 2)};
}

/// Routing with popularity rank^-zipf. Solves for the inclusion probabilities: not for hot loops.
Routing skewed_routing(double experts, double top_k, double tokens, double zipf);

struct ExpertShape {
  double hidden = 0;
  double ffn = 0;  ///< Intermediate size of one expert.
};

/// Sort, two grouped GEMMs, activation and combine of `copies` routed tokens, without the router.
inline double grouped_seconds(const Device& d,
                              const ExpertShape& e,
                              const Routing& routing,
                              double copies) {
  const double matrix = 3 * e.hidden * e.ffn;
  const MatrixFormat& f = d.experts;
  const double weights = routing.experts * matrix * f.weight_bytes / d.grouped_bandwidth;
  const double compute = routing.tiles * 128 * matrix * 2 * d.grouped_cost / f.speed;
  const double traffic = copies * (d.k.routing_bytes * e.hidden + d.k.activation_bytes * e.ffn);
  return d.k.routing_latency + convert_seconds(d, f, copies * e.hidden) +
         std::sqrt(weights * weights + compute * compute) + traffic / d.bandwidth;
}

}  // namespace temper::sim_hw
