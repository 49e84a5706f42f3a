#include "actors/simulation/packing.hpp"

#include "core/check.hpp"
#include "sim_hw/operators/operators.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace temper::actors {
namespace {

struct Bin {
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
  double squares = 0;
};

std::int64_t divided_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Puts each sequence, longest first, into the emptiest of `bins` (the last of equals).
std::vector<Bin> fill(const std::vector<Tokens>& descending, std::size_t bins) {
  // Tokens, and the bin's index counted from the end.
  using Entry = std::pair<std::int64_t, std::size_t>;
  std::vector<Bin> out(bins);
  std::vector<Entry> heap(bins);  // Min-heap by tokens.
  const auto put = [&](std::size_t bin, Tokens length) {
    const auto tokens = static_cast<double>(length.count());
    out[bin].tokens += length.count();
    out[bin].squares += tokens * tokens;
    ++out[bin].sequences;
  };
  // The first sequences go to empty bins; in reverse order these are sorted, hence a heap.
  const std::size_t direct = std::min(bins, descending.size());
  for (std::size_t i = 0; i < direct; ++i)
    put(i, descending[i]);
  for (std::size_t i = 0; i < bins; ++i)
    heap[i] = {out[bins - 1 - i].tokens, i};
  for (std::size_t i = direct; i < descending.size(); ++i) {
    std::ranges::pop_heap(heap, std::greater<>{});
    Entry& entry = heap.back();
    entry.first += descending[i].count();
    put(bins - 1 - entry.second, descending[i]);
    std::ranges::push_heap(heap, std::greater<>{});
  }
  return out;
}

bool within(const std::vector<Bin>& bins, std::int64_t limit) {
  return std::ranges::all_of(bins,
                             [&](const Bin& b) { return b.tokens <= limit || b.sequences <= 1; });
}

/// Lower bound of the number of micro-batches: by tokens, and one for each sequence over half of
/// the limit.
std::int64_t fewest(const std::vector<Tokens>& descending,
                    std::int64_t tokens,
                    std::int64_t limit) {
  const auto long_ones =
      std::ranges::partition_point(descending, [&](Tokens t) { return 2 * t.count() > limit; });
  return std::max<std::int64_t>(divided_up(tokens, limit), long_ones - descending.begin());
}

void hand_out(std::vector<Bin> bins, Packing& out) {
  std::ranges::stable_sort(bins, std::greater<>{}, &Bin::tokens);
  const auto replicas = static_cast<std::size_t>(out.replicas);
  std::vector<Bin> sums(replicas);
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const std::size_t place = i % replicas;
    Bin& sum = sums[i / replicas % 2 == 0 ? place : replicas - 1 - place];
    sum.tokens += bins[i].tokens;
    out.largest_tokens = std::max(out.largest_tokens, bins[i].tokens);
    sum.squares += bins[i].squares;
  }
  for (const Bin& sum : sums) {
    out.busiest_tokens = std::max(out.busiest_tokens, sum.tokens);
    out.busiest_squares = std::max(out.busiest_squares, sum.squares);
  }
}

}  // namespace

Tokens Packing::mean_tokens() const {
  return Tokens(divided_up(busiest_tokens, std::max<std::int64_t>(1, micro_batches)));
}

double Packing::mean_squares() const {
  return busiest_squares / static_cast<double>(std::max<std::int64_t>(1, micro_batches));
}

std::vector<Tokens> repeated(std::vector<Tokens> lengths, std::int64_t times) {
  if (times == 1)
    return lengths;
  std::vector<Tokens> out;
  out.reserve(lengths.size() * static_cast<std::size_t>(times));
  for (const Tokens length : lengths)
    out.insert(out.end(), static_cast<std::size_t>(times), length);
  return out;
}

Packing pack(std::vector<Tokens> lengths, const PackingLimits& limits) {
  TEMPER_CHECK(!lengths.empty(), "expected at least one sequence to pack");
  std::ranges::sort(lengths, std::greater<>{});
  Packing out;
  out.replicas = limits.replicas;
  for (const Tokens length : lengths)
    out.tokens += length.count();
  const std::int64_t least = fewest(lengths, out.tokens, limits.tokens);
  const auto rounded = [&](std::int64_t n) {
    return divided_up(n, limits.multiple) * limits.multiple;
  };
  std::int64_t n = rounded(divided_up(least, limits.replicas));
  std::vector<Bin> bins = fill(lengths, static_cast<std::size_t>(n * limits.replicas));
  while (!within(bins, limits.tokens)) {
    n = rounded(n + std::max<std::int64_t>(1, n / 32));
    bins = fill(lengths, static_cast<std::size_t>(n * limits.replicas));
  }
  out.micro_batches = n;
  hand_out(std::move(bins), out);
  return out;
}

const Packing& Packings::operator()(const PackingLimits& limits) {
  const auto known = made_.find(limits);
  return known != made_.end() ? known->second
                              : made_.emplace(limits, pack(lengths_, limits)).first->second;
}

LayerAttention layer_attention(const sim_hw::ModelSpec& model,
                               const sim_hw::Device& device,
                               const sim_hw::Layout& layout,
                               const sim_hw::TrainShape& shape,
                               double squares) {
  const auto tp = static_cast<double>(layout.tp);
  const auto cp = static_cast<double>(layout.cp);
  const auto tokens = static_cast<double>(shape.seq);
  sim_hw::AttentionShape a;
  a.heads = static_cast<double>(model.heads) / tp;
  a.kv_heads = model.latent ? a.heads : std::max(1.0, static_cast<double>(model.kv_heads) / tp);
  a.key_dim = static_cast<double>(model.head_dim);
  a.value_dim = static_cast<double>(model.value_dim());
  const double mean = squares / tokens;
  return {sim_hw::attention_prefill_seconds(device, a, 1, tokens) / cp,
          sim_hw::attention_prefill_seconds(device, a, tokens / mean, mean) / cp};
}

}  // namespace temper::actors
