#include "actors/policy/internal/attention.hpp"

#include "actors/policy/internal/parallel.hpp"

#include <algorithm>
#include <vector>

namespace temper::actors {
namespace {

using Index = std::int64_t;

Index keys_of(const AttentionQuery& query) {
  return query.runs[0].count + query.runs[1].count;
}

Index width_of(const AttentionShape& shape) {
  return shape.heads * shape.head_dim;
}

/// The part of a pair that reads one KV head, as a pair of its own.
AttentionPair of_head(AttentionPair pair, Index head, const AttentionShape& one) {
  const Index queries = head * one.heads * one.head_dim;
  const Index keys = head * one.head_dim;
  pair.query.query += queries;
  pair.query.out += queries;
  pair.query.log_sums += head * one.heads;
  pair.gradient.d_out += queries;
  pair.gradient.d_query += queries;
  for (int run = 0; run < 2; ++run) {
    pair.query.runs[run].keys += keys;
    pair.gradient.d_keys[run] += keys;
  }
  return pair;
}

}  // namespace

void attend_all(std::span<const AttentionQuery> queries,
                const AttentionShape& shape,
                const KeyLayout& layout) {
  if (queries.empty())
    return;
  Index longest = 0;
  Index sum = 0;
  for (const AttentionQuery& query : queries) {
    longest = std::max(longest, keys_of(query));
    sum += keys_of(query);
  }
  const auto rows = std::ssize(queries);
  for_each_range(rows, 2 * width_of(shape) * sum / rows, [&](Index begin, Index end) {
    std::vector<float> scratch(static_cast<std::size_t>(longest));
    attend(queries.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
           shape,
           layout,
           scratch);
  });
}

void attend_all_backward(std::span<const AttentionPair> pairs,
                         std::span<const std::int64_t> families,
                         const AttentionShape& shape,
                         const KeyLayout& layout) {
  const AttentionShape one{shape.heads / shape.kv_heads, 1, shape.head_dim};
  Index sum = 0;
  for (const AttentionPair& pair : pairs)
    sum += keys_of(pair.query);
  const Index parts = std::ssize(families) * shape.kv_heads;
  const auto backward = [&](Index part) {
    const auto family = static_cast<std::size_t>(part / shape.kv_heads);
    const Index end = family + 1 < families.size() ? families[family + 1] : std::ssize(pairs);
    for (Index i = families[family]; i < end; ++i) {
      const AttentionPair own =
          of_head(pairs[static_cast<std::size_t>(i)], part % shape.kv_heads, one);
      attend_backward(own.query, own.gradient, one, layout);
    }
  };
  if (parts == 0)
    return;
  for_each_range(parts, 4 * width_of(shape) * sum / parts, [&](Index begin, Index end) {
    for (Index part = begin; part < end; ++part)
      backward(part);
  });
}

}  // namespace temper::actors
