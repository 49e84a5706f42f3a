// Attention of many rows on the threads of set_compute_threads().
#pragma once

#include "actors/policy/internal/kernels.hpp"

namespace temper::actors {

/// attend() for every query.
void attend_all(std::span<const AttentionQuery> queries,
                const AttentionShape& shape,
                const KeyLayout& layout);

/// A query with the arrays of its gradients.
struct AttentionPair {
  AttentionQuery query;
  AttentionGradient gradient;
};
/// attend_backward() for every pair, in order for each key. Pairs of one family, which are
/// adjacent, add to the same keys: family i begins at `families[i]`.
void attend_all_backward(std::span<const AttentionPair> pairs,
                         std::span<const std::int64_t> families,
                         const AttentionShape& shape,
                         const KeyLayout& layout);

}  // namespace temper::actors
