#include "actors/policy/internal/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TEMPER_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TEMPER_SIMD
#endif
#define TEMPER_INLINE inline __attribute__((always_inline))

namespace temper::actors {

namespace {

using Index = std::int64_t;

/// e^x with an error of about 2 units in the last place. Inline, so that loops over it vectorize.
/// 2^t = 2^round(t) * 2^f with |f| <= 1/2; 2^f by its Taylor polynomial of degree 6.
TEMPER_INLINE float fast_exp(float x) {
  const float clamped = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
  const float t = clamped * 1.44269504f;
  const auto whole = static_cast<std::int32_t>(t + (t < 0 ? -0.5f : 0.5f));
  const auto rounded = static_cast<float>(whole);
  // ln 2 in two parts, so that the remainder is exact to the last bit.
  const float r = (clamped - rounded * 0.693359375f) - rounded * -2.12194440e-4f;
  float p = 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * std::bit_cast<float>((whole + 127) << 23);
}

template <int kDim>
TEMPER_INLINE float dot(const float* a, const float* b, Index n) {
  float sum = 0;
  for (Index i = 0; i < (kDim > 0 ? kDim : n); ++i)
    sum += a[i] * b[i];
  return sum;
}

template <int kDim>
TEMPER_INLINE void add_scaled(float* y, const float* x, float scale, Index n) {
  for (Index i = 0; i < (kDim > 0 ? kDim : n); ++i)
    y[i] += scale * x[i];
}

template <int kDim>
TEMPER_INLINE void attend_row(const AttentionQuery& row,
                              const AttentionShape& shape,
                              const KeyLayout& layout,
                              float* scores) {
  const Index dim = kDim > 0 ? kDim : shape.head_dim;
  const Index share = shape.heads / shape.kv_heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  for (Index h = 0; h < shape.heads; ++h) {
    const float* q = row.query + h * dim;
    const Index kv = h / share * dim;
    float largest = -std::numeric_limits<float>::infinity();
    Index n = 0;
    for (const KeyRun& run : row.runs) {
      for (Index j = 0; j < run.count; ++j, ++n) {
        scores[n] = scale * dot<kDim>(q, run.keys + j * layout.stride + kv, dim);
        largest = std::max(largest, scores[n]);
      }
    }
    float sum = 0;
    for (Index j = 0; j < n; ++j) {
      scores[j] = fast_exp(scores[j] - largest);
      sum += scores[j];
    }
    float* out = row.out + h * dim;
    std::fill_n(out, dim, 0.0f);
    n = 0;
    for (const KeyRun& run : row.runs) {
      const float* values = run.keys + layout.value_offset + kv;
      for (Index j = 0; j < run.count; ++j, ++n)
        add_scaled<kDim>(out, values + j * layout.stride, scores[n], dim);
    }
    const float inverse = 1.0f / sum;
    for (Index i = 0; i < dim; ++i)
      out[i] *= inverse;
    if (row.log_sums != nullptr)
      row.log_sums[h] = largest + std::log(sum);
  }
}

template <int kDim>
TEMPER_INLINE void attend_row_backward(const AttentionQuery& row,
                                       const AttentionGradient& gradient,
                                       const AttentionShape& shape,
                                       const KeyLayout& layout) {
  const Index dim = kDim > 0 ? kDim : shape.head_dim;
  const Index share = shape.heads / shape.kv_heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  std::fill_n(gradient.d_query, shape.heads * dim, 0.0f);
  for (Index h = 0; h < shape.heads; ++h) {
    const float* q = row.query + h * dim;
    const float* d_out = gradient.d_out + h * dim;
    float* d_q = gradient.d_query + h * dim;
    const Index kv = h / share * dim;
    const float mean = dot<kDim>(d_out, row.out + h * dim, dim);
    for (int r = 0; r < 2; ++r) {
      for (Index j = 0; j < row.runs[r].count; ++j) {
        const float* key = row.runs[r].keys + j * layout.stride + kv;
        const float* value = key + layout.value_offset;
        float* d_key = gradient.d_keys[r] + j * layout.stride + kv;
        const float p = fast_exp(scale * dot<kDim>(q, key, dim) - row.log_sums[h]);
        const float d_score = p * (dot<kDim>(d_out, value, dim) - mean) * scale;
        add_scaled<kDim>(d_key + layout.value_offset, d_out, p, dim);
        add_scaled<kDim>(d_key, q, d_score, dim);
        add_scaled<kDim>(d_q, key, d_score, dim);
      }
    }
  }
}

}  // namespace

TEMPER_SIMD void rms_norm(
    const float* x, const float* w, float* y, float* inverse_rms, const NormRows& shape) {
  const Index width = shape.width;
  for (Index r = 0; r < shape.rows; ++r) {
    const float* in = x + r * width;
    float* out = y + r * width;
    const float mean = dot<0>(in, in, width) / static_cast<float>(width);
    const float inverse = 1.0f / std::sqrt(mean + shape.epsilon);
    for (Index i = 0; i < width; ++i)
      out[i] = in[i] * inverse * w[i];
    if (inverse_rms != nullptr)
      inverse_rms[r] = inverse;
  }
}

// With n = x / rms: dx = (dy w - n mean(dy w n)) / rms, dw = sum over rows of dy n.
TEMPER_SIMD void rms_norm_backward(const float* x,
                                   const float* w,
                                   const float* inverse_rms,
                                   const float* dy,
                                   float* dx,
                                   float* dw,
                                   std::int64_t rows,
                                   std::int64_t width) {
  for (Index r = 0; r < rows; ++r) {
    const float* in = x + r * width;
    const float* d_out = dy + r * width;
    float* d_in = dx + r * width;
    const float inverse = inverse_rms[r];
    float sum = 0;
    for (Index i = 0; i < width; ++i)
      sum += d_out[i] * w[i] * in[i];
    const float pull = sum * inverse * inverse / static_cast<float>(width);
    for (Index i = 0; i < width; ++i) {
      d_in[i] = inverse * (d_out[i] * w[i] - in[i] * pull);
      dw[i] += d_out[i] * in[i] * inverse;
    }
  }
}

TEMPER_SIMD void swiglu(const float* gate_up, float* y, std::int64_t rows, std::int64_t ffn) {
  for (Index r = 0; r < rows; ++r) {
    const float* gate = gate_up + r * 2 * ffn;
    const float* up = gate + ffn;
    float* out = y + r * ffn;
    for (Index i = 0; i < ffn; ++i)
      out[i] = gate[i] * up[i] / (1.0f + fast_exp(-gate[i]));
  }
}

// silu(g) = g s with s = sigmoid(g); its derivative is s (1 + g (1 - s)).
TEMPER_SIMD void swiglu_backward(
    const float* gate_up, const float* dy, float* d_gate_up, std::int64_t rows, std::int64_t ffn) {
  for (Index r = 0; r < rows; ++r) {
    const float* gate = gate_up + r * 2 * ffn;
    const float* up = gate + ffn;
    const float* d_out = dy + r * ffn;
    float* d_gate = d_gate_up + r * 2 * ffn;
    float* d_up = d_gate + ffn;
    for (Index i = 0; i < ffn; ++i) {
      const float s = 1.0f / (1.0f + fast_exp(-gate[i]));
      d_gate[i] = d_out[i] * up[i] * s * (1.0f + gate[i] * (1.0f - s));
      d_up[i] = d_out[i] * gate[i] * s;
    }
  }
}

namespace {

/// The `llama3` scaling (Llama 3.1, and transformers): frequencies with few turns in the original
/// context are divided by `factor`, those with many turns are unchanged, and those in between are
/// interpolated.
double scaled(double frequency, const RopeScaling& s) {
  const double turns =
      static_cast<double>(s.original_context.count()) * frequency / (2 * std::numbers::pi);
  const double kept = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  const double share = std::clamp(kept, 0.0, 1.0);
  return frequency * ((1 - share) / s.factor + share);
}

}  // namespace

RotaryTable::RotaryTable(const ModelConfig& model)
    : half_(model.head_size() / 2),
      cos_(static_cast<std::size_t>(model.context.count() * half_)),
      sin_(cos_.size()) {
  for (Index i = 0; i < half_; ++i) {
    const double exponent = -static_cast<double>(i) / static_cast<double>(half_);
    const double plain = std::pow(model.rope_base, exponent);
    const auto frequency =
        static_cast<float>(model.rope_scaling ? scaled(plain, *model.rope_scaling) : plain);
    for (Index p = 0; p < model.context.count(); ++p) {
      const auto angle = static_cast<double>(static_cast<float>(p) * frequency);
      cos_[index(p) + static_cast<std::size_t>(i)] = static_cast<float>(std::cos(angle));
      sin_[index(p) + static_cast<std::size_t>(i)] = static_cast<float>(std::sin(angle));
    }
  }
}

TEMPER_SIMD void rotate(float* rows,
                        std::int64_t stride,
                        std::int64_t heads,
                        const RotaryTable& table,
                        std::span<const std::int32_t> positions,
                        Turn turn) {
  const Index half = table.half();
  const float sign = turn == Turn::Forward ? 1.0f : -1.0f;
  for (std::size_t r = 0; r < positions.size(); ++r) {
    const float* cosines = table.cosines(positions[r]);
    const float* sines = table.sines(positions[r]);
    for (Index h = 0; h < heads; ++h) {
      float* low = rows + static_cast<Index>(r) * stride + h * 2 * half;
      float* high = low + half;
      for (Index i = 0; i < half; ++i) {
        const float a = low[i];
        const float b = high[i];
        low[i] = a * cosines[i] - sign * b * sines[i];
        high[i] = b * cosines[i] + sign * a * sines[i];
      }
    }
  }
}

TEMPER_SIMD void attend(std::span<const AttentionQuery> queries,
                        const AttentionShape& shape,
                        const KeyLayout& layout,
                        std::span<float> scratch) {
  for (const AttentionQuery& row : queries) {
    switch (shape.head_dim) {
      case 16:
        attend_row<16>(row, shape, layout, scratch.data());
        break;
      case 32:
        attend_row<32>(row, shape, layout, scratch.data());
        break;
      case 64:
        attend_row<64>(row, shape, layout, scratch.data());
        break;
      case 128:
        attend_row<128>(row, shape, layout, scratch.data());
        break;
      default:
        attend_row<0>(row, shape, layout, scratch.data());
        break;
    }
  }
}

TEMPER_SIMD void attend_backward(const AttentionQuery& query,
                                 const AttentionGradient& gradient,
                                 const AttentionShape& shape,
                                 const KeyLayout& layout) {
  switch (shape.head_dim) {
    case 16:
      attend_row_backward<16>(query, gradient, shape, layout);
      break;
    case 32:
      attend_row_backward<32>(query, gradient, shape, layout);
      break;
    case 64:
      attend_row_backward<64>(query, gradient, shape, layout);
      break;
    case 128:
      attend_row_backward<128>(query, gradient, shape, layout);
      break;
    default:
      attend_row_backward<0>(query, gradient, shape, layout);
      break;
  }
}

TEMPER_SIMD float softmax(const float* logits, float* p, std::int64_t width, float temperature) {
  const float inverse = 1.0f / temperature;
  float largest = -std::numeric_limits<float>::infinity();
  for (Index i = 0; i < width; ++i)
    largest = std::max(largest, logits[i] * inverse);
  float sum = 0;
  for (Index i = 0; i < width; ++i) {
    p[i] = fast_exp(logits[i] * inverse - largest);
    sum += p[i];
  }
  const float scale = 1.0f / sum;
  for (Index i = 0; i < width; ++i)
    p[i] *= scale;
  return largest + std::log(sum);
}

TEMPER_SIMD void adamw(
    const AdamWStep& step, float* w, const float* gradient, float* m, float* v, std::int64_t n) {
  const float decay = 1.0f - step.learning_rate * step.weight_decay;
  for (Index i = 0; i < n; ++i) {
    const float g = gradient[i] * step.gradient_scale;
    m[i] = step.beta1 * m[i] + (1.0f - step.beta1) * g;
    v[i] = step.beta2 * v[i] + (1.0f - step.beta2) * g * g;
    const float direction = m[i] / step.correction1;
    const float size = std::sqrt(v[i] / step.correction2) + step.epsilon;
    w[i] = w[i] * decay - step.learning_rate * direction / size;
  }
}

TEMPER_SIMD void round_to_bfloat16(const float* x, Bfloat16* y, std::int64_t n) {
  for (Index i = 0; i < n; ++i)
    y[i] = to_bfloat16(x[i]);
}

double sum_of_squares(std::span<const float> values) {
  double sum = 0;
  for (const float x : values)
    sum += static_cast<double>(x) * static_cast<double>(x);
  return sum;
}

}  // namespace temper::actors
