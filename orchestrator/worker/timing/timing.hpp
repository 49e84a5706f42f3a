// Raw results of `temper-worker measure`: one row for each timed operation. fit.hpp derives the
// constants of a calibration from it.
#pragma once

#include "core/describe.hpp"

#include <string>
#include <vector>

namespace temper::orchestrator {

/// `work`: amount of work, by kind:
///   decode       running responses, sum of their cached tokens
///   prefill      rows computed, prompts copied
///   touch        responses in slots that were never used; `us` is the additional time
///   update       minibatches, rows, response tokens
///   reference    rows
///   reward       responses
/// and empty for: update_first, update_resumed, reference_first (additional time), export, stage,
/// commit, save, interrupt, free_kv, free_weights, allocate_kv, offload, onload, reference_load;
/// and decode_slowdown, update_slowdown, reference_slowdown, whose `us` is the ratio of the time
/// with every other core busy to the time without.
struct Timing {
  std::string kind;
  std::int32_t threads = 1;
  std::vector<double> work;
  double us = 0;  ///< Median, in microseconds.
  std::int64_t repeats = 0;
  double spread = 0;  ///< Half the interquartile range of the repeats, over the median.
};

struct Timings {
  std::vector<Timing> timings;
  std::vector<double> lengths;  ///< Number of responses of length 1, 2, ... tokens.
};

void describe(auto& v, Timing& t) {
  v.field(1, "kind", t.kind);
  v.field(2, "threads", t.threads);
  v.field(3, "work", t.work);
  v.field(4, "us", t.us);
  v.field(5, "repeats", t.repeats);
  v.field(6, "spread", t.spread);
}
void describe(auto& v, Timings& t) {
  v.field(1, "samples", t.timings);
  v.field(2, "lengths", t.lengths);
}

}  // namespace temper::orchestrator
