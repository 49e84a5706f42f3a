#include "actors/policy/decoder.hpp"

#include "actors/policy/internal/attention.hpp"
#include "actors/policy/internal/kernels.hpp"
#include "actors/policy/internal/low_rank.hpp"
#include "actors/policy/internal/matmul.hpp"
#include "actors/policy/internal/parallel.hpp"
#include "core/clock.hpp"

#include <algorithm>

namespace temper::actors {

struct Decoder::State {
  State(const Layout& l, std::int32_t slot_count)
      : layout(l),
        slots(slot_count),
        rotary(l.model()),
        epsilon(static_cast<float>(l.model().norm_epsilon)),
        shape{l.model().heads, l.model().kv_heads, l.head_dim()} {}

  // Cache: [layer][slot][position][keys of all kv heads, values of all kv heads].
  std::int64_t position_stride() const { return 2 * layout.kv_width(); }
  std::int64_t slot_stride() const { return layout.model().context.count() * position_stride(); }
  float* slot_cache(std::int32_t layer, std::int32_t slot) {
    return cache.data() + (static_cast<std::int64_t>(layer) * slots + slot) * slot_stride();
  }

  void reserve(std::int64_t rows);
  void embed(const WeightsView& weights, std::span<const DecoderRow> rows);
  void queries_and_keys(const WeightsView& weights, std::int32_t layer, std::int64_t rows);
  void attention(std::int32_t layer, std::span<const DecoderRow> rows);
  void run_layer(const WeightsView& weights, std::int32_t layer, std::span<const DecoderRow> rows);
  void lap(Duration DecoderProfile::*part);
  struct ProductShape {
    std::int64_t rows = 0, in = 0, out = 0;
  };
  /// y[rows, out] (+)= x[rows, in] * w^T, and the adapters of this tensor. Rounds x if w is.
  void multiply(const WeightsView& weights,
                std::size_t tensor,
                const std::vector<float>& x,
                std::vector<float>& y,
                const ProductShape& shape,
                Accumulate accumulate = Accumulate::No);
  void multiply_base(const TensorValues& w,
                     const std::vector<float>& x,
                     std::vector<float>& y,
                     const ProductShape& shape,
                     Accumulate accumulate);

  const Layout layout;
  const std::int32_t slots;
  const RotaryTable rotary;
  const float epsilon;
  const AttentionShape shape;
  FloatBuffer cache;
  std::vector<float> x, normed, qkv, mixed, gate_up, inner, logits;
  std::vector<Bfloat16> rounded;  ///< The operand of the current product.
  LowRankScratch low_rank;
  std::vector<std::int32_t> positions;
  std::vector<AttentionQuery> queries;
  bool profiling = false;
  RealClock clock;
  Time lap_start{};
  DecoderProfile profile;
};

void Decoder::State::lap(Duration DecoderProfile::*part) {
  if (!profiling)
    return;
  const Time now = clock.now();
  profile.*part += now - lap_start;
  lap_start = now;
}

void Decoder::State::multiply(const WeightsView& weights,
                              std::size_t tensor,
                              const std::vector<float>& from,
                              std::vector<float>& to,
                              const ProductShape& p,
                              Accumulate accumulate) {
  multiply_base(weights.tensor(tensor), from, to, p, accumulate);
  std::int64_t first = 0;
  for (const AdapterRows& own : weights.adapters()) {
    const LowRankRows rows{from.data() + first * p.in, to.data() + first * p.out, own.rows, p.out};
    for (const AdapterTarget& target : own.adapter->layout().targets_in(tensor))
      add_low_rank(*own.adapter, target, rows, low_rank);
    first += own.rows;
  }
}

void Decoder::State::multiply_base(const TensorValues& w,
                                   const std::vector<float>& from,
                                   std::vector<float>& to,
                                   const ProductShape& p,
                                   Accumulate accumulate) {
  if (w.rounded == nullptr)
    return matmul_nt(from.data(), w.floats, to.data(), p.rows, p.in, p.out, accumulate);
  rounded.resize(std::max(rounded.size(), static_cast<std::size_t>(p.rows * p.in)));
  round_to_bfloat16(from.data(), rounded.data(), p.rows * p.in);
  matmul_nt(rounded.data(), w.rounded, to.data(), p.rows, p.in, p.out, accumulate);
}

void Decoder::State::reserve(std::int64_t rows) {
  const auto grow = [&](std::vector<float>& v, std::int64_t width) {
    if (static_cast<std::int64_t>(v.size()) < rows * width)
      v.resize(static_cast<std::size_t>(rows * width));
  };
  const std::int64_t d = layout.model().hidden;
  grow(x, d);
  grow(normed, d);
  grow(mixed, layout.attention_width());
  grow(qkv, layout.qkv_width());
  grow(gate_up, 2 * static_cast<std::int64_t>(layout.model().ffn));
  grow(inner, layout.model().ffn);
  grow(logits, layout.vocabulary());
}

void Decoder::State::embed(const WeightsView& weights, std::span<const DecoderRow> rows) {
  const std::int64_t d = layout.model().hidden;
  const TensorValues table = weights.tensor(layout.embedding());
  positions.clear();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    TEMPER_DCHECK(rows[r].token >= 0 && rows[r].token < layout.vocabulary(), "token out of range");
    TEMPER_DCHECK(rows[r].slot >= 0 && rows[r].slot < slots, "slot out of range");
    TEMPER_DCHECK(rows[r].position < layout.model().context.count(), "position out of range");
    float* to = x.data() + static_cast<std::int64_t>(r) * d;
    if (table.rounded == nullptr)
      std::copy_n(table.floats + rows[r].token * d, d, to);
    else
      std::transform(
          table.rounded + rows[r].token * d, table.rounded + (rows[r].token + 1) * d, to, to_float);
    positions.push_back(rows[r].position);
  }
}

/// Architecture-specific operations on queries and keys before the rotary embedding.
void Decoder::State::queries_and_keys(const WeightsView& weights,
                                      std::int32_t layer,
                                      std::int64_t rows) {
  const std::int64_t width = layout.qkv_width();
  const std::size_t base = layout.layer(layer);
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = qkv.data() + r * width;
    switch (layout.model().architecture) {
      case Architecture::Llama:
        return;
      case Architecture::Qwen2: {
        const float* bias = weights.tensor(base + Layout::QkvBias).floats;
        for (std::int64_t i = 0; i < width; ++i)
          row[i] += bias[i];
        break;
      }
      case Architecture::Qwen3: {
        const float* of_queries = weights.tensor(base + Layout::QueryNorm).floats;
        const float* of_keys = weights.tensor(base + Layout::KeyNorm).floats;
        float* keys = row + layout.attention_width();
        rms_norm(row, of_queries, row, nullptr, {shape.heads, shape.head_dim, epsilon});
        rms_norm(keys, of_keys, keys, nullptr, {shape.kv_heads, shape.head_dim, epsilon});
        break;
      }
    }
  }
}

void Decoder::State::attention(std::int32_t layer, std::span<const DecoderRow> rows) {
  const std::int64_t width = layout.qkv_width();
  const std::int64_t d = layout.attention_width();
  rotate(qkv.data(), width, shape.heads + shape.kv_heads, rotary, positions, Turn::Forward);
  queries.clear();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const float* row = qkv.data() + static_cast<std::int64_t>(r) * width;
    float* keys = slot_cache(layer, rows[r].slot);
    std::copy_n(row + d, position_stride(), keys + rows[r].position * position_stride());
    AttentionQuery query;
    query.query = row;
    query.runs[0] = {keys, rows[r].position + 1};
    query.out = mixed.data() + static_cast<std::int64_t>(r) * d;
    queries.push_back(query);
  }
  attend_all(queries, shape, {position_stride(), layout.kv_width()});
}

void Decoder::State::run_layer(const WeightsView& weights,
                               std::int32_t layer,
                               std::span<const DecoderRow> rows) {
  const auto n = static_cast<std::int64_t>(rows.size());
  const std::int64_t d = layout.model().hidden;
  const std::int64_t f = layout.model().ffn;
  const std::size_t base = layout.layer(layer);
  const auto tensor = [&](Layout::LayerTensor which) { return weights.tensor(base + which); };

  rms_norm(x.data(), tensor(Layout::AttentionNorm).floats, normed.data(), nullptr, {n, d, epsilon});
  lap(&DecoderProfile::norm);
  multiply(weights, base + Layout::Qkv, normed, qkv, {n, d, layout.qkv_width()});
  lap(&DecoderProfile::matmul);
  queries_and_keys(weights, layer, n);
  attention(layer, rows);
  lap(&DecoderProfile::attention);
  multiply(
      weights, base + Layout::Out, mixed, x, {n, layout.attention_width(), d}, Accumulate::Yes);
  lap(&DecoderProfile::matmul);
  rms_norm(x.data(), tensor(Layout::FfnNorm).floats, normed.data(), nullptr, {n, d, epsilon});
  lap(&DecoderProfile::norm);
  multiply(weights, base + Layout::GateUp, normed, gate_up, {n, d, 2 * f});
  lap(&DecoderProfile::matmul);
  for_each_range(n, 2 * f, [&](std::int64_t begin, std::int64_t end) {
    swiglu(gate_up.data() + begin * 2 * f, inner.data() + begin * f, end - begin, f);
  });
  lap(&DecoderProfile::activation);
  multiply(weights, base + Layout::Down, inner, x, {n, f, d}, Accumulate::Yes);
  lap(&DecoderProfile::matmul);
}

Decoder::Decoder(const Layout& layout, std::int32_t slots)
    : state_(std::make_unique<State>(layout, slots)) {
  allocate_cache();
}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

void Decoder::allocate_cache() {
  if (state_->cache.empty())
    state_->cache =
        FloatBuffer(state_->layout.model().layers * state_->slots * state_->slot_stride());
}

void Decoder::free_cache() {
  state_->cache.release();
}

Bytes Decoder::cache_bytes() const {
  return state_->cache.bytes();
}

std::span<float> Decoder::forward(const WeightsView& weights,
                                  std::span<const DecoderRow> rows,
                                  Output output) {
  State& s = *state_;
  TEMPER_CHECK(!s.cache.empty(), "the KV cache is not allocated");
  const auto n = static_cast<std::int64_t>(rows.size());
  const std::int64_t d = s.layout.model().hidden;
  if (s.profiling)
    s.lap_start = s.clock.now();
  s.reserve(n);
  s.embed(weights, rows);
  s.lap(&DecoderProfile::other);
  for (std::int32_t layer = 0; layer < s.layout.model().layers; ++layer)
    s.run_layer(weights, layer, rows);
  if (output == Output::Nothing)
    return {};
  const std::int32_t vocabulary = s.layout.vocabulary();
  const float* last = weights.tensor(s.layout.norm()).floats;
  rms_norm(s.x.data(), last, s.normed.data(), nullptr, {n, d, s.epsilon});
  s.lap(&DecoderProfile::norm);
  s.multiply(weights, s.layout.head(), s.normed, s.logits, {n, d, vocabulary});
  s.lap(&DecoderProfile::matmul);
  return {s.logits.data(), static_cast<std::size_t>(n * vocabulary)};
}

void Decoder::copy_slot(std::int32_t from, std::int32_t to, std::int32_t positions) {
  for (std::int32_t layer = 0; layer < state_->layout.model().layers; ++layer) {
    std::copy_n(state_->slot_cache(layer, from),
                positions * state_->position_stride(),
                state_->slot_cache(layer, to));
  }
}

void Decoder::enable_profile() {
  state_->profiling = true;
  state_->profile = {};
}
const DecoderProfile& Decoder::profile() const {
  return state_->profile;
}

}  // namespace temper::actors
