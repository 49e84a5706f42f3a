// Seconds of the products of low-rank adapters, which are computed beside those of the frozen
// weights and never merged (docs/decisions/0023-adapters-beside-frozen-weights.md).
//
//   one layer, T tokens: u = x A^T (T x rank x in), then y += u B^T (T x out x rank). Adding to y
//     reads it once more. Backward: both gradients of both products; adding to dx reads it once
//     more
//   routed experts: the same as grouped products, with the tiles of the experts' own products
//   latent attention when decoding: `kv_b_proj` is absorbed into queries and outputs, so A
//     multiplies each head's latent on both sides
// Assumed: BF16 whatever the format of the weights, as in serving engines; two kernels per layer,
// without a kernel for several layers; rank columns are not padded. Products of few columns are
// bound by their traffic.
#pragma once

#include "sim_hw/model/adapter.hpp"
#include "sim_hw/operators/operators.hpp"

namespace temper::sim_hw {

/// Bytes of a parameter of an adapter in an engine, and on its way there.
inline constexpr double kAdapterBytes = 2;

struct ProductSeconds {
  double forward = 0;
  double backward = 0;         ///< Both gradients.
  double weight_gradient = 0;  ///< Part of `backward`.

  ProductSeconds& operator+=(const ProductSeconds& o) {
    forward += o.forward;
    backward += o.backward;
    weight_gradient += o.weight_gradient;
    return *this;
  }
};

/// Of `rows` tokens.
inline ProductSeconds low_rank_seconds(const Device& d,
                                       double rank,
                                       const LowRank& l,
                                       double rows) {
  const auto gemm = [&](double m, double n, double k) {
    return gemm_seconds(d, Heat::Sustained, m, n, k, MatrixFormat{});
  };
  const double added = 2 * rows / d.bandwidth;
  ProductSeconds out;
  out.forward = gemm(rows, rank, l.in) + gemm(rows, l.out, rank) + added * l.out;
  out.weight_gradient = d.k.matmul_backward * (gemm(rank, l.in, rows) + gemm(l.out, rank, rows));
  out.backward = out.weight_gradient +
                 d.k.matmul_backward * (gemm(rows, l.in, rank) + gemm(rows, rank, l.out)) +
                 added * l.in;
  return out;
}

/// `kv_b_proj` of `rows` tokens in its absorbed form.
inline double absorbed_low_rank_seconds(
    const Device& d, double rank, const LowRank& l, double rows, const AttentionShape& a) {
  const double added = 2 * rows * a.heads * (l.in + a.value_dim) / d.bandwidth;
  return gemm_seconds(d, Heat::Sustained, 2 * rows * a.heads, rank, l.in, MatrixFormat{}) +
         gemm_seconds(d, Heat::Sustained, rows, l.out, rank, MatrixFormat{}) + added;
}

/// Of `copies` routed tokens.
inline ProductSeconds grouped_low_rank_seconds(const Device& d,
                                               const AdapterShapes& adapter,
                                               const Routing& routing,
                                               double copies) {
  double once = 0;
  double added_forward = 0;
  double added_backward = 0;
  for (const LowRank& l : adapter.expert.all()) {
    const double matrix = adapter.rank * (l.in + l.out);
    const double weights = routing.experts * matrix * kAdapterBytes / d.grouped_bandwidth;
    const double compute = routing.tiles * 128 * matrix * 2 * d.grouped_cost;
    const double traffic = 2 * copies * (l.in + 2 * adapter.rank + l.out);
    once += gemm_latency(d, l.in) + gemm_latency(d, adapter.rank) +
            std::sqrt(weights * weights + compute * compute) + traffic / d.bandwidth;
    added_forward += 2 * copies * l.out / d.bandwidth;
    added_backward += 2 * copies * l.in / d.bandwidth;
  }
  return {once + added_forward, 2 * once + added_backward, once};
}

/// The layers of an attention block or of an MLP, whose down projections of latents have
/// `latent_rows` tokens and the others `rows`.
inline ProductSeconds low_rank_seconds(
    const Device& d, double rank, const LowRankLayers& layers, double rows, double latent_rows) {
  ProductSeconds sum;
  for (const LowRank& l : layers.all()) {
    const bool latent =
        l.target == AdapterTarget::QueryDown || l.target == AdapterTarget::KeyValueDown;
    sum += low_rank_seconds(d, rank, l, latent ? latent_rows : rows);
  }
  return sum;
}

}  // namespace temper::sim_hw
