// The operations of a transformer other than matrix products, as loops over rows of plain arrays,
// each with its backward. Shared by the decoder (no gradients) and the trainable network, so both
// compute the same function. Compiled for several instruction sets and selected at run time. No
// allocation, no threads. Arrays are borrowed for the call; none may be null unless noted.
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/model_folder/bfloat16.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace temper::actors {

struct NormRows {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float epsilon = 1e-6f;  ///< Added to the mean square.
};
/// y = x / rms(x) * w per row, in place if y is x; `inverse_rms` (one per row) may be null.
void rms_norm(const float* x, const float* w, float* y, float* inverse_rms, const NormRows& shape);
/// Overwrites dx and adds to dw.
void rms_norm_backward(const float* x,
                       const float* w,
                       const float* inverse_rms,
                       const float* dy,
                       float* dx,
                       float* dw,
                       std::int64_t rows,
                       std::int64_t width);

/// y[rows, f] = silu(gate) * up of gate_up[rows, 2 f].
void swiglu(const float* gate_up, float* y, std::int64_t rows, std::int64_t ffn);
void swiglu_backward(
    const float* gate_up, const float* dy, float* d_gate_up, std::int64_t rows, std::int64_t ffn);

/// Cosines and sines for every position of the model's context: angle(p, i) = p * f(i) with f(i) =
/// base^(-2 i / head_dim), scaled by `rope_scaling`. Frequency and angle are rounded to single
/// precision, as in the training and serving of published models; this matters at long positions.
class RotaryTable {
 public:
  explicit RotaryTable(const ModelConfig& model);
  /// half() values, owned by the table. Requires: 0 <= position < model.context.
  const float* cosines(std::int64_t position) const { return &cos_[index(position)]; }
  const float* sines(std::int64_t position) const { return &sin_[index(position)]; }
  std::int64_t half() const { return half_; }

 private:
  std::size_t index(std::int64_t position) const {
    return static_cast<std::size_t>(position * half_);
  }
  std::int64_t half_;
  std::vector<float> cos_;
  std::vector<float> sin_;
};

enum class Turn { Forward, Back };
/// Rotates the first `heads` heads of each row in place by the row's position (element i of a head
/// pairs with element i + head_dim / 2). Rows are `stride` floats apart.
void rotate(float* rows,
            std::int64_t stride,
            std::int64_t heads,
            const RotaryTable& table,
            std::span<const std::int32_t> positions,
            Turn turn);

struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};

/// Consecutive keys (and values, `value_offset` floats after their key), `stride` floats apart; the
/// KV heads of one position are adjacent.
struct KeyRun {
  const float* keys = nullptr;
  std::int64_t count = 0;
};
struct KeyLayout {
  std::int64_t stride = 0;
  std::int64_t value_offset = 0;
};

/// One query row (all heads) and up to two runs of keys: those of a shared prompt, and its own.
/// `log_sums` (one per head: log of the softmax denominator) may be null. `scratch` has one float
/// per key.
struct AttentionQuery {
  const float* query = nullptr;
  KeyRun runs[2];
  float* out = nullptr;
  float* log_sums = nullptr;
};
void attend(std::span<const AttentionQuery> queries,
            const AttentionShape& shape,
            const KeyLayout& layout,
            std::span<float> scratch);

/// Gradients of attend() for one row. Overwrites d_query and adds to d_keys, which have the layout
/// of the keys.
struct AttentionGradient {
  const float* d_out = nullptr;
  float* d_query = nullptr;
  float* d_keys[2] = {nullptr, nullptr};
};
void attend_backward(const AttentionQuery& query,
                     const AttentionGradient& gradient,
                     const AttentionShape& shape,
                     const KeyLayout& layout);

/// p = softmax(logits / temperature); p may be logits. Returns the natural log of the softmax
/// denominator. Requires: temperature > 0.
float softmax(const float* logits, float* p, std::int64_t width, float temperature);

/// *Decoupled* weight decay, bias-corrected moments (Loshchilov and Hutter, 2019).
struct AdamWStep {
  float learning_rate, beta1, beta2, epsilon, weight_decay;
  float correction1, correction2;  ///< 1 - beta^t.
  float gradient_scale;
};
void adamw(
    const AdamWStep& step, float* w, const float* gradient, float* m, float* v, std::int64_t n);

double sum_of_squares(std::span<const float> values);

void round_to_bfloat16(const float* x, Bfloat16* y, std::int64_t n);

}  // namespace temper::actors
