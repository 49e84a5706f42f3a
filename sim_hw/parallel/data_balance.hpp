// Which data-parallel replica takes which sample of a batch, so that micro-batches cost as much.
//
// A sample is `seq` tokens of documents that do not attend to each other: its attention costs, by
// the linear model, a + b sum length^2, and only the sum differs between samples. Micro-batch k of
// all replicas that share experts is as slow as the slowest of them, layer by layer; groups of such
// replicas meet once a step. Wait of a step over the attention of whole sequences:
//   max over groups of sum over k (max over replicas of cost - mean cost) / (samples seq^2)
// and TrainShape::attention_imbalance is 1 + that.
// Rearranged: samples by falling cost, row after row of as many as there are replicas, in a row the
// dearest to the group that has least. The batch is the same set of samples, so that its gradient
// is too, but for the order of a sum. Constants: none. Threads: pure functions.
#pragma once

#include "core/random.hpp"

#include <cstdint>
#include <vector>

namespace temper::sim_hw {

/// Lengths of documents that samples are packed from, lognormal.
struct DocumentShape {
  double median = 1000;  ///< Tokens.
  double spread = 1;     ///< Standard deviation of the logarithm.
};
/// Sums of squared document lengths of `samples` samples of `seq` tokens; documents are cut where a
/// sample ends.
std::vector<double> pack_documents(const DocumentShape& documents,
                                   std::int64_t samples,
                                   std::int64_t seq,
                                   Random& random);

struct SampleReplicas {
  std::int64_t replicas = 1;     ///< Data-parallel; divide the samples.
  std::int64_t coupled = 1;      ///< Of them, those that share experts; divide the replicas.
  std::int64_t micro_batch = 1;  ///< Samples.
};
/// Sample of each place: replica by replica, each its samples in order.
using SampleOrder = std::vector<std::size_t>;

SampleOrder as_they_come(std::size_t samples);
SampleOrder rearranged(const std::vector<double>& costs, const SampleReplicas& shape);
/// 1 + the wait above, for costs in tokens^2.
double attention_imbalance(const std::vector<double>& costs,
                           const SampleOrder& order,
                           const SampleReplicas& shape,
                           std::int64_t seq);

}  // namespace temper::sim_hw
