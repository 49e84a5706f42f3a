// Floating-point operations of a model's arithmetic, independent of the kernels that run it: the
// numerator of the MFU (model FLOPs utilization, PaLM, arXiv 2204.02311, appendix B).
//
// Equation of a forward pass over t tokens with p (query, key) pairs:
//   F = 2 (A t + L H (d + v) p) + 2 V h r
//   A: active parameters per token (top_k experts), without embedding and head; L layers, H heads
//   with d (query, key) and v (value) dimensions; r: tokens that pass a head of V x h.
// Training is 3 F: the backward pass computes two gradients. Recomputed work (activation recompute,
// prefill of evicted caches) does not count. With an adapter, F also has its products, and the
// backward pass computes only the input gradients of frozen weights.
// Pairs. A whole sequence of s tokens in training or scoring counts s^2, without discount for
// causality, like Megatron-LM (2205.05198) and most published figures. An engine counts the tokens
// that it attends to, s (s + 1) / 2.
// Range: matrix products only; norms, softmax, rotary embedding and sampling are left out.
#pragma once

#include "sim_hw/model/adapter.hpp"
#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/model/parameters.hpp"

namespace temper::sim_hw {

struct ForwardWork {
  double tokens = 0;
  double pairs = 0;   ///< (query, key) pairs per head and layer.
  double logits = 0;  ///< Tokens that pass the head.

  ForwardWork& operator+=(const ForwardWork& o) {
    tokens += o.tokens;
    pairs += o.pairs;
    logits += o.logits;
    return *this;
  }
};

/// A sequence in training or scoring.
inline ForwardWork whole_sequence(double tokens) {
  return {tokens, tokens * tokens, tokens};
}
/// `tokens` more of a sequence that has `before` cached, without logits.
inline ForwardWork continued(double before, double tokens) {
  return {tokens, tokens * before + tokens * (tokens + 1) / 2, 0};
}

/// The factors of the equation, computed once.
struct ModelFlops {
  explicit ModelFlops(const ModelSpec& model, const std::optional<Adapter>& adapter = {}) {
    const ParameterCount active = count_active_parameters(model);
    const std::int64_t head = active.head > 0 ? active.head : active.embedding;
    per_token = 2 * as_double(active.without_lookup() - head);
    per_pair =
        2 * as_double(model.layers * model.heads) * as_double(model.head_dim + model.value_dim());
    per_logit = 2 * as_double(head);
    if (!adapter)
      return;
    frozen_per_token = per_token;
    frozen_per_logit = per_logit;
    per_token += 2 * as_double(active_adapter_parameters(model, *adapter));
  }

  double forward(const ForwardWork& w) const {
    return per_token * w.tokens + per_pair * w.pairs + per_logit * w.logits;
  }
  double training(const ForwardWork& w) const {
    return 3 * forward(w) - frozen_per_token * w.tokens - frozen_per_logit * w.logits;
  }

  double per_token = 0;
  double per_pair = 0;
  double per_logit = 0;
  double frozen_per_token = 0;  ///< Part of per_token whose weights have no gradients.
  double frozen_per_logit = 0;
};

}  // namespace temper::sim_hw
