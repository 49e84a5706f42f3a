// A linear layer whose weight is frozen, with the adapter beside it. Includes libtorch: see
// functions.hpp.
#pragma once

#include "actors/policy/adapter.hpp"
#include "actors/policy/internal/low_rank.hpp"
#include "actors/policy/internal/operands.hpp"

#include <ATen/core/Tensor.h>

namespace temper::actors {

/// The adapter of a pass. Must outlive the graph.
struct AdapterPass {
  Adapter* adapter = nullptr;
  at::Tensor leaf{};           ///< The adapter's values: makes the graph reach the first layer.
  float* gradients = nullptr;  ///< Where backward adds; must be allocated before it.
  LowRankScratch scratch{};
};

/// The input of a linear layer. If the graph has what x was computed from, x is computed again in
/// the backward pass: the kernels of one row cost far less than a product, and need no memory.
struct LinearInput {
  at::Tensor x;
  at::Tensor from{};  ///< Undefined: the graph must keep x.
  at::Tensor norm{};  ///< Defined: x = normalize(from, norm, epsilon). Else: x = gated(from).
  float epsilon = 0;
};

/// x[rows, in] * w[out, in]^T, plus the adapter of this tensor of the layout. The graph needs x
/// only if the tensor has an adapter. Products with the adapter are float32.
at::Tensor frozen_linear(const LinearInput& input,
                         const at::Tensor& w,
                         std::size_t tensor,
                         AdapterPass& pass,
                         Products& products);

}  // namespace temper::actors
