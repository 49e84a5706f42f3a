// The differentiable operations of the transformer, over the kernels. Each is one node of the
// autograd graph where libtorch's own operators would be five to ten. Includes libtorch: only
// transformer.cpp may include this.
#pragma once

#include "actors/policy/internal/kernels.hpp"
#include "actors/policy/pack.hpp"

#include <ATen/core/Tensor.h>

namespace temper::actors {

/// What attention needs beside its input. Must outlive the graph.
struct AttentionContext {
  const Pack* pack = nullptr;
  const RotaryTable* rotary = nullptr;
  AttentionShape shape;
  float epsilon = 1e-6f;  ///< Of the norms of heads.
};

/// x[rows, in] * w[out, in]^T.
at::Tensor linear(const at::Tensor& x, const at::Tensor& w);
/// residual + x w^T.
at::Tensor linear_onto(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& w);
at::Tensor normalise(const at::Tensor& x, const at::Tensor& w, float epsilon);
/// Each head of the queries by one weight, each of the keys by the other; values as they are.
at::Tensor normalise_heads(const at::Tensor& qkv,
                           const at::Tensor& of_queries,
                           const at::Tensor& of_keys,
                           const AttentionContext& context);
at::Tensor gated(const at::Tensor& gate_up);
/// Rotary positions and causal attention over the pack's sequences; qkv rows in, mixed heads out.
at::Tensor attention(const at::Tensor& qkv, const AttentionContext& context);
/// log softmax(logits / temperature) at the pack's targets.
at::Tensor target_logprobs(const at::Tensor& logits, const Pack& pack, double temperature);

}  // namespace temper::actors
