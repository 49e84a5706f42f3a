// A run on this machine whose processes failed by plan, beside what was predicted of it: the same
// configuration and the same plan in virtual time, with the real scheduler, and actors that take
// the times that the run's own took before anything failed (run_times.hpp, timed_actor.hpp). Where
// the time of both went: orchestrator/metrics/goodput.hpp.
//
// Not predicted: that processes share cores, so that one that starts slows the others; the head's
// own work; how long the first update after a start takes.
#pragma once

#include "orchestrator/metrics/goodput.hpp"
#include "study/faults/run_times.hpp"

#include <filesystem>
#include <string>

namespace temper::study {

struct PlayedRun {
  orchestrator::TimeLost predicted, measured;
  std::uint64_t planned = 0;  ///< Failures, within the time of the measured run.
  double first_s = 0;         ///< When the first was planned: until then times were taken.
};
template <class V>
void describe(V& v, PlayedRun& r) {
  v.field(1, "predicted", r.predicted);
  v.field(2, "measured", r.measured);
  v.field(3, "planned", r.planned);
  v.field(4, "first_s", r.first_s);
}

/// Of a run folder. Errors: it is no finished run on local hardware with a plan; it was resumed by
/// hand; nothing happened before its first failure; the prediction did not end, or its audit is not
/// clean.
Result<PlayedRun> compare_played(const std::filesystem::path& run);

/// For people.
std::string played_text(const PlayedRun& run);

}  // namespace temper::study
