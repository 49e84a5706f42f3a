// What `temper-worker measure` found out about a machine's engines, as it came: one row per thing
// that was timed. fit.hpp makes the constants of a calibration of it.
#pragma once

#include "core/describe.hpp"

#include <string>
#include <vector>

namespace temper::orchestrator {

/// `work`: how much was done, by kind:
///   decode       running responses, cached tokens of all of them
///   prefill      rows computed, prompts copied
///   touch        responses whose slots were new; `us` is the time beyond the usual
///   update       minibatches, rows, response tokens
///   reference    rows
///   reward       responses
/// and nothing for: update_first, update_resumed, reference_first (beyond the usual), export,
/// stage, commit, save, interrupt, free_kv, free_weights, allocate_kv, offload, onload,
/// reference_load; and decode_slowdown, update_slowdown, reference_slowdown, whose `us` is the
/// ratio of the time beside work on every other core to that without.
struct LocalSample {
  std::string kind;
  std::int32_t threads = 1;
  std::vector<double> work;
  double us = 0;  ///< Median.
  std::int64_t repeats = 0;
  double spread = 0;  ///< Half the range of the middle half of the repeats, over the median.
};

struct LocalSamples {
  std::vector<LocalSample> samples;
  std::vector<double> lengths;  ///< Responses that ended with 1, 2, ... tokens.
};

template <class V>
void describe(V& v, LocalSample& s) {
  v.field(1, "kind", s.kind);
  v.field(2, "threads", s.threads);
  v.field(3, "work", s.work);
  v.field(4, "us", s.us);
  v.field(5, "repeats", s.repeats);
  v.field(6, "spread", s.spread);
}
template <class V>
void describe(V& v, LocalSamples& s) {
  v.field(1, "samples", s.samples);
  v.field(2, "lengths", s.lengths);
}

}  // namespace temper::orchestrator
