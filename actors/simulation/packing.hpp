// How sequences of different lengths share the micro-batches of a step, and what attention over
// them costs beside one long sequence. Used by trainer and reference. Values only.
//
// Packing: longest first into the emptiest micro-batch; as few micro-batches as hold `limit` tokens
// each, found by trying (a sequence longer than that has one to itself). Micro-batches go to the
// replicas fullest first, back and forth.
//
// Attention. sim_hw prices a micro-batch of T packed tokens as one sequence of T. Packed sequences
// attend each to itself: with Q the sum of their squared lengths, the scores are those of T^2 / Q
// sequences of Q / T tokens, which also has T tokens. T and Q are means over the micro-batches of
// the busiest replica; where long sequences have micro-batches of their own, Q / T exceeds T and
// the correction adds. The correction is the difference of
// attention_prefill_seconds() for the two shapes in every layer, as often as the pass runs it.
// Assumed: it does not change which stage is slowest, nor what communication hides behind
// attention.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "sim_hw/operators/device.hpp"

#include <compare>
#include <map>
#include <utility>
#include <vector>

namespace temper::actors {

struct Packing {
  std::int64_t micro_batches = 0;  ///< Of each replica.
  std::int64_t replicas = 1;
  std::int64_t tokens = 0;          ///< Of all sequences.
  std::int64_t busiest_tokens = 0;  ///< Of the replica with the most.
  std::int64_t largest_tokens = 0;  ///< Of a micro-batch.
  double busiest_squares = 0;       ///< Most squared lengths that a replica has.

  /// Mean of the busiest replica's micro-batches, rounded up.
  Tokens mean_tokens() const;
  double mean_squares() const;
};

struct PackingLimits {
  std::int64_t tokens = 1;    ///< Of a micro-batch.
  std::int64_t replicas = 1;  ///< Data parallelism.
  std::int64_t multiple = 1;  ///< What the number of micro-batches of a replica is rounded up to.

  auto operator<=>(const PackingLimits&) const = default;
};
/// Each length so many times, as in a thinned run, where it counts for others.
std::vector<Tokens> repeated(std::vector<Tokens> lengths, std::int64_t times);
/// Requires: limits of 1 or more, lengths above 0, at least one.
Packing pack(std::vector<Tokens> lengths, const PackingLimits& limits);

/// Packings of the same sequences under different limits, each made once. One thread.
class Packings {
 public:
  /// Requires: as pack().
  explicit Packings(std::vector<Tokens> lengths) : lengths_(std::move(lengths)) {}
  const Packing& operator()(const PackingLimits& limits);

 private:
  const std::vector<Tokens> lengths_;
  std::map<PackingLimits, Packing> made_;
};

/// Seconds of attention's forward pass in one layer.
struct LayerAttention {
  double packed = 0;  ///< As sim_hw prices a micro-batch of `shape`.
  double real = 0;    ///< With the lengths it holds.
};
/// Of a micro-batch of `shape`, whose sequences have `squares` in all.
LayerAttention layer_attention(const sim_hw::ModelSpec& model,
                               const sim_hw::Device& device,
                               const sim_hw::Layout& layout,
                               const sim_hw::TrainShape& shape,
                               double squares);

}  // namespace temper::actors
