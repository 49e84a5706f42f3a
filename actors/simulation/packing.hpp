// Packing of sequences of different lengths into micro-batches, and the cost of attention over
// packed sequences compared with one long sequence. Used by trainer and reference. Values only.
//
// Packing: longest first into the emptiest micro-batch, with the smallest number of micro-batches
// of at most `limit` tokens, found by trial (a longer sequence has its own). Micro-batches are
// assigned to the replicas fullest first, back and forth.
//
// Replicas that share experts exchange tokens in every layer, so each micro-batch takes as long as
// the most expensive of the group, by a linear model: tokens + w squared lengths. `balance`:
//   step       packed and assigned as above; replicas wait for each other once per step only
//   arrival    each replica gets an equal number of sequences in their order and packs its own
//   tokens     packed and assigned as above
//   attention  packed as above, and assigned by cost (sim_hw/parallel/data_balance.hpp)
// With the last three, the tokens and squares of the busiest replica are those of the most
// expensive micro-batches of the busiest group.
//
// Attention. sim_hw prices a micro-batch of T packed tokens as one sequence of T tokens, but packed
// sequences attend only to themselves. With Q the sum of their squared lengths, the scores are
// those of T^2 / Q sequences of Q / T tokens, which also have T tokens in total. T and Q are means
// over the micro-batches of the busiest replica. If long sequences have their own micro-batches, Q
// / T exceeds T and the correction is positive. The correction is the difference of
// attention_prefill_seconds() for the two shapes in every layer, for each time the pass runs it.
// Assumption: it changes neither the slowest stage nor the communication hidden behind attention.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "sim_hw/operators/device.hpp"

#include <compare>
#include <map>
#include <utility>
#include <vector>

namespace temper::actors {

struct Packing {
  std::int64_t micro_batches = 0;  ///< Micro-batches per replica.
  std::int64_t replicas = 1;
  std::int64_t tokens = 0;          ///< Tokens of all sequences.
  std::int64_t busiest_tokens = 0;  ///< Tokens of the busiest replica.
  std::int64_t largest_tokens = 0;  ///< Tokens of the largest micro-batch.
  double busiest_squares = 0;       ///< Largest sum of squared lengths of a replica.

  /// Mean tokens of the busiest replica's micro-batches, rounded up.
  Tokens mean_tokens() const;
  double mean_squares() const;
};

struct PackingLimits {
  std::int64_t tokens = 1;    ///< Most tokens per micro-batch.
  std::int64_t replicas = 1;  ///< Data parallelism.
  std::int64_t multiple = 1;  ///< The number of micro-batches of a replica is rounded up to a
                              ///< multiple of this.
  DataBalance balance = DataBalance::Step;
  std::int64_t coupled = 1;  ///< Replicas that share experts; divides `replicas`.
  double per_square = 0;     ///< Cost of a squared length, in tokens.

  auto operator<=>(const PackingLimits&) const = default;
};
/// Repeats each length, as in a thinned run, where each response stands for several.
std::vector<Tokens> repeated(std::vector<Tokens> lengths, std::int64_t times);
/// Requires: limits >= 1, and at least one length, all > 0.
Packing pack(std::vector<Tokens> lengths, const PackingLimits& limits);

/// Caches packings of the same sequences under different limits. Not thread-safe.
class Packings {
 public:
  /// Requires: see pack().
  explicit Packings(std::vector<Tokens> lengths) : lengths_(std::move(lengths)) {}
  const Packing& operator()(const PackingLimits& limits);

 private:
  const std::vector<Tokens> lengths_;
  std::map<PackingLimits, Packing> made_;
};

/// Seconds of attention's forward pass in one layer.
struct LayerAttention {
  double packed = 0;  ///< As sim_hw prices a micro-batch of `shape`.
  double real = 0;    ///< With the actual lengths.
};
/// For a micro-batch of `shape` whose sum of squared lengths is `squares`.
LayerAttention layer_attention(const sim_hw::ModelSpec& model,
                               const sim_hw::Device& device,
                               const sim_hw::Layout& layout,
                               const sim_hw::TrainShape& shape,
                               double squares);

}  // namespace temper::actors
