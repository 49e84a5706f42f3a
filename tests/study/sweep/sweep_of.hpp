// A sweep from its options to its rows, as the command runs it.
#pragma once

#include "study/sweep/sweep.hpp"

namespace temper::study {

inline Result<Sweep> sweep_of(const SweepOptions& options) {
  TEMPER_TRY(auto jobs, sweep_jobs(options));
  return run_sweep(options, std::move(jobs));
}

}  // namespace temper::study
