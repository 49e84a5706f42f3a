// The real runs of a comparison: local hardware, and twins. One after the other, so that each has
// the machine for itself; each leaves the folder of any run, out/runs/POLICY-etaETA-...-seedSEED,
// and its figures are read from there.
#pragma once

#include "study/compare/compare.hpp"

#include <optional>
#include <span>
#include <vector>

namespace temper::study {

/// Runs the jobs at these places, and notes their folders in their rows and their figures at the
/// same places. A run that fails is a result like another; one that the user stops is the last.
/// Error: a folder that is not to be written over, before anything is run.
/// Requires: options.start_run and options.out, where there is a job.
Result<PolicyComparison::End> make_real_runs(const CompareOptions& options,
                                             std::vector<CompareJob>& jobs,
                                             std::span<const std::size_t> places,
                                             std::vector<std::optional<Result<Figures>>>& figures);

}  // namespace temper::study
