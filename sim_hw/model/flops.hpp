// Floating-point operations that a model's arithmetic asks for, whatever a kernel really does:
// the numerator of the MFU (model FLOPs utilisation, PaLM, arXiv 2204.02311, appendix B).
//
// Equation, of a forward pass over t tokens that make p pairs of a query with a key it attends to:
//   F = 2 (A t + L H (d + v) p) + 2 V h r
//   A: parameters that a token meets (top_k experts), without embedding and head; L layers, H heads
//   of d (query, key) and v (value) dimensions; r: tokens whose next token is asked for, by a head
//   of V x h.
// Training is 3 F: the backward pass computes two gradients. What is computed again (recompute,
// prefill of what was cached before) does not count.
// Pairs. A whole sequence of s tokens in training or scoring: s^2, without discount for causality,
// as Megatron-LM (2205.05198) and most published figures count. An engine: what its tokens really
// attend to, s (s + 1) / 2.
// Range: matrix products alone; norms, softmax, rotary and sampling are left out.
#pragma once

#include "sim_hw/model/model_spec.hpp"

namespace temper::sim_hw {

struct ForwardWork {
  double tokens = 0;
  double pairs = 0;   ///< Of a query and a key that it attends to, in each head of each layer.
  double logits = 0;  ///< Tokens that pass the head.

  ForwardWork& operator+=(const ForwardWork& o) {
    tokens += o.tokens;
    pairs += o.pairs;
    logits += o.logits;
    return *this;
  }
};

/// A sequence as trained or scored.
inline ForwardWork whole_sequence(double tokens) {
  return {tokens, tokens * tokens, tokens};
}
/// `tokens` more of a sequence that has `before` cached, their logits left out.
inline ForwardWork continued(double before, double tokens) {
  return {tokens, tokens * before + tokens * (tokens + 1) / 2, 0};
}

/// The factors of the equation, made once.
struct ModelFlops {
  explicit ModelFlops(const ModelSpec& model);

  double forward(const ForwardWork& w) const {
    return per_token * w.tokens + per_pair * w.pairs + per_logit * w.logits;
  }
  double training(const ForwardWork& w) const { return 3 * forward(w); }

  double per_token = 0;
  double per_pair = 0;
  double per_logit = 0;
};

}  // namespace temper::sim_hw
