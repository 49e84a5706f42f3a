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
struct Timing {
  std::string kind;
  std::int32_t threads = 1;
  std::vector<double> work;
  double us = 0;  ///< Median.
  std::int64_t repeats = 0;
  double spread = 0;  ///< Half the range of the middle half of the repeats, over the median.
};

struct Timings {
  std::vector<Timing> timings;
  std::vector<double> lengths;  ///< Responses that ended with 1, 2, ... tokens.
};

template <class V>
void describe(V& v, Timing& t) {
  v.field(1, "kind", t.kind);
  v.field(2, "threads", t.threads);
  v.field(3, "work", t.work);
  v.field(4, "us", t.us);
  v.field(5, "repeats", t.repeats);
  v.field(6, "spread", t.spread);
}
template <class V>
void describe(V& v, Timings& t) {
  v.field(1, "samples", t.timings);
  v.field(2, "lengths", t.lengths);
}

}  // namespace temper::orchestrator
