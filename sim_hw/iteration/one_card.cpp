#include "sim_hw/iteration/one_card.hpp"

#include <algorithm>
#include <cmath>

namespace temper::sim_hw {
namespace {

double rounded_batch(double live) {
  const double multiple = live > 32 ? 64 : 8;
  return multiple * std::ceil(live / multiple);
}

/// Seconds to decode all responses. Steps cost the same until the live batch or the context block
/// changes.
double decode_all(const Device& d, const StepModel& m, const IterationWork& work) {
  double seconds = 0;
  double done = 0;
  std::size_t finished = 0;
  const auto count = static_cast<double>(work.lengths.size());
  while (finished < work.lengths.size()) {
    const double block_end = kContextBlock * (std::floor(done / kContextBlock) + 1);
    const double until = std::min(block_end, work.lengths[finished]);
    const double live = rounded_batch(count - static_cast<double>(finished));
    seconds +=
        (until - done) * decode_seconds(d, m, {live, work.prompt + block_end, Launch::Graph});
    done = until;
    while (finished < work.lengths.size() && work.lengths[finished] <= done)
      ++finished;
  }
  return seconds;
}

double prefill_all(const Device& d, const StepModel& m, const IterationWork& work) {
  const auto count = static_cast<double>(work.lengths.size());
  const double whole = std::floor(count / kPrefillSequences);
  const double rest = count - whole * kPrefillSequences;
  double seconds = whole * prefill_seconds(d, m, {kPrefillSequences, work.prompt});
  if (rest > 0)
    seconds += prefill_seconds(d, m, {rest, work.prompt});
  return seconds;
}

}  // namespace

std::vector<MicroBatch> fill_micro_batches(const IterationWork& work, double limit) {
  std::vector<MicroBatch> out;
  for (const double length : work.lengths) {
    const double seq = work.prompt + length;  // Ascending: the last one is the longest.
    if (out.empty() || (out.back().sequences + 1) * seq > limit)
      out.push_back({0, 0});
    out.back().sequences += 1;
    out.back().seq = seq;
  }
  return out;
}

OneCardIteration one_card_iteration(const Device& d,
                                    const StepModel& m,
                                    const IterationWork& work) {
  OneCardIteration out;
  for (const double length : work.lengths)
    out.response_tokens += length;
  out.longest = out.decode_steps = work.lengths.empty() ? 0 : work.lengths.back();
  out.prefill = prefill_all(d, m, work);
  out.decode = decode_all(d, m, work);
  for (const MicroBatch& batch : fill_micro_batches(work, kMicroBatchTokens)) {
    const PassShape shape{batch.sequences, batch.seq};
    out.micro_batches += 1;
    out.padded_tokens += batch.sequences * batch.seq;
    out.reference += logprob_seconds(d, m, shape);
    out.update += forward_backward_seconds(d, m, shape, Recompute::Full);
  }
  out.update += optimizer_seconds(d, m.parameters);
  out.weight_sync = weight_copy_seconds(d, m);
  return out;
}

}  // namespace temper::sim_hw
