// Divides a batch into minibatches of complete groups, in an order fixed by seed and step, and each
// minibatch into packs that hold at most a given number of rows.
#pragma once

#include "actors/policy/pack.hpp"
#include "trainer/engine.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace temper::trainer {

/// Indices into the batch.
using SampleIndices = std::vector<std::size_t>;

/// Groups shuffled by (seed, update) and distributed as evenly as complete groups allow; the
/// samples of a group are adjacent. No minibatch is empty, so there are at most as many as groups.
std::vector<SampleIndices> split_minibatches(std::span<const TrainSample> batch,
                                             std::int32_t minibatches,
                                             std::uint64_t seed,
                                             std::uint64_t update);

/// One forward and backward pass: its samples, in the order of the pack's targets.
struct MicroBatch {
  actors::Pack pack;
  SampleIndices samples;
};

/// One minibatch: one step of an optimizer.
struct Minibatch {
  std::vector<MicroBatch> passes;  ///< Without prepared gradients.
  std::size_t responses = 0, tokens = 0;
};

/// Adjacent samples with the same prompt share it in a pack. A single sample may exceed `rows`.
std::vector<MicroBatch> pack_micro_batches(std::span<const TrainSample> batch,
                                           const SampleIndices& minibatch,
                                           std::int64_t rows);

/// The entries of the tokens that have a loss; empty if `per_token` is.
std::vector<double> of_trained_tokens(const TrainSample& sample, std::span<const float> per_token);

/// Estimates the log-probs of the tokens that have a loss under the weights before the step, as
/// linear in versions: the current weights count as the version after it (A-3PO, 2512.06547).
std::vector<double> interpolated_proximal(const TrainSample& sample,
                                          std::span<const double> current,
                                          std::span<const double> behaviour);

/// How many of the samples each group has.
std::map<GroupId, std::size_t> responses_by_group(std::span<const TrainSample> samples);

}  // namespace temper::trainer
