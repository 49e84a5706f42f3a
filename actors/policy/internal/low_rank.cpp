#include "actors/policy/internal/low_rank.hpp"

#include "actors/policy/internal/matmul.hpp"

#include <algorithm>

namespace temper::actors {
namespace {

/// The memory of `rows` x `width` floats.
float* reserve(std::vector<float>& scratch, std::int64_t rows, std::int64_t width) {
  scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(rows * width)));
  return scratch.data();
}

}  // namespace

void add_low_rank(const Adapter& adapter,
                  const AdapterTarget& target,
                  const LowRankRows& layer,
                  LowRankScratch& scratch) {
  const std::int64_t rank = adapter.layout().lora().rank;
  const float* a = adapter.values().data() + target.a;
  const float* b = adapter.values().data() + target.b;
  float* hidden = reserve(scratch.hidden, layer.rows, rank);
  matmul_nt(layer.x, a, hidden, layer.rows, target.in, rank);
  Product product{'N', 'T', layer.rows, target.out, rank, rank, rank, Accumulate::Yes};
  product.ldc = layer.stride;
  product.alpha = static_cast<float>(adapter.layout().lora().scale());
  multiply(product, hidden, b, layer.y + target.row);
}

void low_rank_backward(const Adapter& adapter,
                       const AdapterTarget& target,
                       const LowRankGradient& g,
                       LowRankScratch& scratch) {
  const std::int64_t rank = adapter.layout().lora().rank;
  const auto scale = static_cast<float>(adapter.layout().lora().scale());
  const float* a = adapter.values().data() + target.a;
  const float* b = adapter.values().data() + target.b;
  const float* dy = g.dy + target.row;
  float* hidden = reserve(scratch.hidden, g.rows, rank);
  float* d_hidden = reserve(scratch.d_hidden, g.rows, rank);
  matmul_nt(g.x, a, hidden, g.rows, target.in, rank);
  Product of_b{'T', 'N', target.out, rank, g.rows, g.stride, rank, Accumulate::Yes};
  of_b.alpha = scale;
  multiply(of_b, dy, hidden, g.adapter + target.b);
  Product of_hidden{'N', 'N', g.rows, rank, target.out, g.stride, rank, Accumulate::No};
  of_hidden.alpha = scale;
  multiply(of_hidden, dy, b, d_hidden);
  matmul_tn(d_hidden, g.x, g.adapter + target.a, g.rows, rank, target.in, Accumulate::Yes);
  if (g.dx != nullptr) {
    multiply(
        {'N', 'N', g.rows, target.in, rank, rank, target.in, Accumulate::Yes}, d_hidden, a, g.dx);
  }
}

}  // namespace temper::actors
