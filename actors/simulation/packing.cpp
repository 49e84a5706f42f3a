#include "actors/simulation/packing.hpp"

#include "core/check.hpp"
#include "sim_hw/operators/operators.hpp"
#include "sim_hw/parallel/data_balance.hpp"

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

/// The bins of each replica, one replica after the other; fullest first, back and forth.
std::vector<Bin> dealt_by_tokens(std::vector<Bin> bins, std::int64_t replica_count) {
  std::ranges::stable_sort(bins, std::greater<>{}, &Bin::tokens);
  const auto replicas = static_cast<std::size_t>(replica_count);
  const std::size_t each = bins.size() / replicas;
  std::vector<Bin> out(bins.size());
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const std::size_t place = i % replicas, row = i / replicas;
    out[(row % 2 == 0 ? place : replicas - 1 - place) * each + row] = bins[i];
  }
  return out;
}

double cost_of(const Bin& bin, double per_square) {
  return static_cast<double>(bin.tokens) + per_square * bin.squares;
}

std::vector<Bin> dealt_by_cost(const std::vector<Bin>& bins, const PackingLimits& limits) {
  std::vector<double> costs;
  costs.reserve(bins.size());
  for (const Bin& bin : bins)
    costs.push_back(cost_of(bin, limits.per_square));
  std::vector<Bin> out;
  for (const std::size_t bin : sim_hw::balanced_order(costs, {limits.replicas, limits.coupled, 1}))
    out.push_back(bins[bin]);
  return out;
}

/// Bins of each replica for its own sequences, one replica after the other; empty if `each` are too
/// few.
std::vector<Bin> packed_apart(const std::vector<std::vector<Tokens>>& descending,
                              std::size_t each,
                              std::int64_t limit) {
  std::vector<Bin> out;
  for (const std::vector<Tokens>& own : descending) {
    const std::vector<Bin> bins = fill(own, each);
    if (!within(bins, limit))
      return {};
    out.insert(out.end(), bins.begin(), bins.end());
  }
  return out;
}

/// Adds up the bins of each replica.
void sum_replicas(const std::vector<Bin>& bins, Packing& out) {
  const auto each = static_cast<std::size_t>(out.micro_batches);
  for (std::size_t from = 0; from < bins.size(); from += each) {
    Bin sum;
    for (std::size_t i = from; i < from + each; ++i) {
      sum.tokens += bins[i].tokens;
      sum.squares += bins[i].squares;
    }
    out.busiest_tokens = std::max(out.busiest_tokens, sum.tokens);
    out.busiest_squares = std::max(out.busiest_squares, sum.squares);
  }
}

/// Adds up, for each group, the most expensive bin of every row.
void sum_groups(const std::vector<Bin>& bins, const PackingLimits& limits, Packing& out) {
  const auto each = static_cast<std::size_t>(out.micro_batches);
  const std::size_t group = each * static_cast<std::size_t>(limits.coupled);
  double most = -1;
  for (std::size_t from = 0; from < bins.size(); from += group) {
    Bin sum;
    for (std::size_t row = 0; row < each; ++row) {
      const Bin* slowest = &bins[from + row];
      for (std::size_t i = from + row; i < from + group; i += each) {
        if (cost_of(bins[i], limits.per_square) > cost_of(*slowest, limits.per_square))
          slowest = &bins[i];
      }
      sum.tokens += slowest->tokens;
      sum.squares += slowest->squares;
    }
    if (const double cost = cost_of(sum, limits.per_square); cost > most) {
      most = cost;
      out.busiest_tokens = sum.tokens;
      out.busiest_squares = sum.squares;
    }
  }
}

std::int64_t rounded_up(std::int64_t n, std::int64_t multiple) {
  return divided_up(n, multiple) * multiple;
}

std::int64_t more_than(std::int64_t n, std::int64_t multiple) {
  return rounded_up(n + std::max<std::int64_t>(1, n / 32), multiple);
}

/// Packs each replica's share of the sequences, in their order.
std::vector<Bin> pack_in_order(const std::vector<Tokens>& lengths,
                               const PackingLimits& limits,
                               std::int64_t& micro_batches) {
  const auto replicas = static_cast<std::size_t>(limits.replicas);
  std::vector<std::vector<Tokens>> own(replicas);
  std::int64_t least = 1;
  for (std::size_t r = 0; r < replicas; ++r) {
    const auto at = [&](std::size_t replica) {
      return lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() * replica / replicas);
    };
    own[r].assign(at(r), at(r + 1));
    std::ranges::sort(own[r], std::greater<>{});
    std::int64_t tokens = 0;
    for (const Tokens length : own[r])
      tokens += length.count();
    least = std::max(least, fewest(own[r], tokens, limits.tokens));
  }
  micro_batches = rounded_up(least, limits.multiple);
  for (;; micro_batches = more_than(micro_batches, limits.multiple)) {
    std::vector<Bin> bins =
        packed_apart(own, static_cast<std::size_t>(micro_batches), limits.tokens);
    if (!bins.empty())
      return bins;
  }
}

/// Packs all sequences together, longest first.
std::vector<Bin> pack_together(std::vector<Tokens> lengths,
                               std::int64_t tokens,
                               const PackingLimits& limits,
                               std::int64_t& micro_batches) {
  std::ranges::sort(lengths, std::greater<>{});
  const std::int64_t least = fewest(lengths, tokens, limits.tokens);
  micro_batches = rounded_up(divided_up(least, limits.replicas), limits.multiple);
  const auto filled = [&] {
    return fill(lengths, static_cast<std::size_t>(micro_batches * limits.replicas));
  };
  std::vector<Bin> bins = filled();
  while (!within(bins, limits.tokens)) {
    micro_batches = more_than(micro_batches, limits.multiple);
    bins = filled();
  }
  return bins;
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
  Packing out;
  out.replicas = limits.replicas;
  for (const Tokens length : lengths)
    out.tokens += length.count();
  std::vector<Bin> bins;
  if (limits.balance == DataBalance::Arrival)
    bins = pack_in_order(lengths, limits, out.micro_batches);
  else
    bins = pack_together(std::move(lengths), out.tokens, limits, out.micro_batches);
  for (const Bin& bin : bins)
    out.largest_tokens = std::max(out.largest_tokens, bin.tokens);
  switch (limits.balance) {
    case DataBalance::Step:
      sum_replicas(dealt_by_tokens(std::move(bins), limits.replicas), out);
      break;
    case DataBalance::Arrival:
      sum_groups(bins, limits, out);
      break;
    case DataBalance::Tokens:
      sum_groups(dealt_by_tokens(std::move(bins), limits.replicas), limits, out);
      break;
    case DataBalance::Attention:
      sum_groups(dealt_by_cost(bins, limits), limits, out);
      break;
  }
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
