// The product of an adapter: y += scale (x A^T) B^T, with A [rank, in] and B [out, rank]. Shared by
// the decoder and the trainable network. Rows of y are `stride` floats apart, because a target may
// be a part of a fused layer. Arrays are borrowed for the call.
#pragma once

#include "actors/policy/adapter.hpp"

#include <cstdint>
#include <vector>

namespace temper::actors {

/// Scratch of the products; grows as needed.
struct LowRankScratch {
  std::vector<float> hidden, d_hidden;
};

/// Inputs and outputs of a whole layer; the target's columns of y are added to.
struct LowRankRows {
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t rows = 0;
  std::int64_t stride = 0;
};
void add_low_rank(const Adapter& adapter,
                  const AdapterTarget& target,
                  const LowRankRows& layer,
                  LowRankScratch& scratch);

/// Inputs and gradients of a whole layer.
struct LowRankGradient {
  const float* x = nullptr;
  const float* dy = nullptr;
  std::int64_t rows = 0;
  std::int64_t stride = 0;   ///< Of dy.
  float* dx = nullptr;       ///< Added to; null if nobody needs it.
  float* adapter = nullptr;  ///< Gradients of A and B, as AdapterLayout; added to.
};
void low_rank_backward(const Adapter& adapter,
                       const AdapterTarget& target,
                       const LowRankGradient& gradient,
                       LowRankScratch& scratch);

}  // namespace temper::actors
