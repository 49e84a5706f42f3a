// Compares a run on this machine whose processes failed by plan with its prediction: the same
// configuration and the same plan in virtual time, with the real scheduler, and actors that take
// the times measured in the run before the first failure (run_times.hpp, timed_actor.hpp).
// Breakdown of both times: orchestrator/metrics/goodput.hpp.
//
// Not predicted: processes share cores, so a starting process slows the others; the orchestrator's
// own work; the longer first update after a start.
#pragma once

#include "orchestrator/metrics/goodput.hpp"
#include "study/faults/run_times.hpp"

#include <filesystem>
#include <string>

namespace temper::study {

struct FaultPrediction {
  orchestrator::TimeLost predicted, measured;
  std::uint64_t planned = 0;  ///< Planned failures within the time of the measured run.
  double first_s = 0;         ///< Time of the first planned failure; times are measured until then.
};
void describe(auto& v, FaultPrediction& r) {
  v.field(1, "predicted", r.predicted);
  v.field(2, "measured", r.measured);
  v.field(3, "planned", r.planned);
  v.field(4, "first_s", r.first_s);
}

/// `run`: a run folder. Errors: not a finished run on local hardware with a fault plan; it was
/// resumed by hand; no update completed before its first failure; the prediction failed or its
/// audit found violations.
Result<FaultPrediction> predict_faults(const std::filesystem::path& run);

/// The comparison as a table.
std::string fault_prediction_text(const FaultPrediction& run);

}  // namespace temper::study
