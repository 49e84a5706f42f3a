// The real runs of a sweep, one after the other, so that each has the machine to itself. Each run
// writes an ordinary run folder, out/runs/KEY=VALUE-...-seedSEED, and its figures are read from
// there.
#pragma once

#include "study/sweep/sweep.hpp"

#include <optional>
#include <span>
#include <vector>

namespace temper::study {

/// Runs the jobs at these places, and stores their folders in their rows and their figures at the
/// same places. A failed run is a result; after a run that the user stops, no further run starts.
/// Error: a folder must not be overwritten; reported before any run starts. Requires:
/// options.start_run and options.out, if there is a job.
Result<Sweep::End> make_real_runs(const SweepOptions& options,
                                  std::vector<SweepJob>& jobs,
                                  std::span<const std::size_t> places,
                                  std::vector<std::optional<Result<Figures>>>& figures);

}  // namespace temper::study
