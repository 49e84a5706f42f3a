// The differentiable operations of the transformer, built on the kernels. Each is one node of the
// autograd graph, instead of five to ten with libtorch's own operators. Includes libtorch: only
// transformer.cpp and frozen_linear.cpp may include this. Backward passes add gradients of matrices
// to the weights' own, which must be allocated: temporary arrays would need as much memory as all
// weights.
#pragma once

#include "actors/policy/internal/kernels.hpp"
#include "actors/policy/internal/operands.hpp"
#include "actors/policy/pack.hpp"

#include <ATen/core/Tensor.h>

namespace temper::actors {

/// Additional inputs of attention. Must outlive the graph.
struct AttentionContext {
  const Pack* pack = nullptr;
  const RotaryTable* rotary = nullptr;
  AttentionShape shape;
  float epsilon = 1e-6f;  ///< Epsilon of the head norms.
};

/// The rows of w[vocabulary, width] for the pack's tokens.
at::Tensor embed(const at::Tensor& w, const Pack& pack, const Products& products);
/// x[rows, in] * w[out, in]^T.
at::Tensor linear(const at::Tensor& x, const at::Tensor& w, Products& products);
/// residual + x w^T.
at::Tensor linear_onto(const at::Tensor& residual,
                       const at::Tensor& x,
                       const at::Tensor& w,
                       Products& products);
at::Tensor normalize(const at::Tensor& x, const at::Tensor& w, float epsilon);
/// Normalizes each head of the queries with one weight and each head of the keys with the other;
/// values are unchanged.
at::Tensor normalize_heads(const at::Tensor& qkv,
                           const at::Tensor& of_queries,
                           const at::Tensor& of_keys,
                           const AttentionContext& context);
at::Tensor gated(const at::Tensor& gate_up);
/// Rotary embedding and causal attention over the pack's sequences; takes qkv rows, returns
/// attention outputs.
at::Tensor attention(const at::Tensor& qkv, const AttentionContext& context);
/// log softmax(logits / temperature) at the pack's targets, then at its candidates. Overwrites the
/// logits by the softmax: an array of that size is the largest of a pass.
at::Tensor target_logprobs(const at::Tensor& logits, const Pack& pack, double temperature);

}  // namespace temper::actors
