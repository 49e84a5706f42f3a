// Assigns the samples of a batch to data-parallel replicas, so that micro-batches cost the same.
//
// A sample is `seq` tokens of documents that do not attend to each other. By the linear model its
// attention costs a + b sum length^2, and only the sum differs between samples. Micro-batch k of
// all replicas that share experts is as slow as the slowest of them, layer by layer; groups of such
// replicas synchronize once per step. Wait of a step over the attention of whole sequences:
//   max over groups of sum over k (max over replicas of cost - mean cost) / (samples seq^2)
// and TrainShape::attention_imbalance is 1 + that.
// Rearranged: samples in descending cost, dealt in rows of one per replica; within a row the most
// expensive sample goes to the group with the least work. The batch is the same set of samples, so
// its gradient is the same up to the order of summation. Constants: none. Threads: pure functions.
#pragma once

#include "core/random.hpp"

#include <cstdint>
#include <vector>

namespace temper::sim_hw {

/// Lengths of the documents packed into samples, lognormal.
struct DocumentShape {
  double median = 1000;  ///< Tokens.
  double spread = 1;     ///< Standard deviation of the logarithm.
};
/// Packs documents into `samples` samples of `seq` tokens and returns the sum of squared document
/// lengths of each; a document is cut at the end of its sample.
std::vector<double> pack_documents(const DocumentShape& documents,
                                   std::int64_t samples,
                                   std::int64_t seq,
                                   Random& random);

struct SampleReplicas {
  std::int64_t replicas = 1;     ///< Data-parallel replicas; divides the number of samples.
  std::int64_t coupled = 1;      ///< Replicas that share experts; divides `replicas`.
  std::int64_t micro_batch = 1;  ///< Samples per micro-batch.
};
/// Sample at each place: replica by replica, each replica's samples in order.
using SampleOrder = std::vector<std::size_t>;

SampleOrder original_order(std::size_t samples);
SampleOrder balanced_order(const std::vector<double>& costs, const SampleReplicas& shape);
/// 1 + the wait defined above. Requires: costs in tokens^2.
double attention_imbalance(const std::vector<double>& costs,
                           const SampleOrder& order,
                           const SampleReplicas& shape,
                           std::int64_t seq);

}  // namespace temper::sim_hw
