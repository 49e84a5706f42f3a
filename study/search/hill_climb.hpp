// Looks for the configuration of a space with most sustained tokens/s
// (study/simulate/simulate.hpp), with a fixed number of runs, so that two things tuned with the
// same number have been given the same effort.
//
// 1. Sample. A third of the runs go to points drawn from the seed.
// 2. Climb. The best point whose neighbours (one step along one axis) are not all known has them
//    run, and so on until the runs are spent or nothing is left.
// 3. Decide. The best few run again, longer; the best of these is the answer.
// Runs of 1 and 2 measure `screening` steady updates each, those of 3 `final_updates`
// (study/simulate/simulate.hpp). Points that make no placement, do not fit or break a rule cost no
// run; the reasons of the latter two are counted. Two points that mean the same configuration are
// one.
//
// The answer depends on the options and the seed alone, not on the number of threads. It is the
// best that was found, which need not be the best there is.
#pragma once

#include "study/search/space.hpp"
#include "study/simulate/layouts.hpp"
#include "study/simulate/simulate.hpp"

namespace temper::study {

struct HillClimbOptions {
  int runs = 48;  ///< Of steps 1 and 2 together.
  std::uint64_t screening = 4;
  std::uint64_t final_updates = 20;
  int finalists = 3;
  std::uint64_t seed = 1;
  SimulateOptions simulate;
};

struct HillClimbed {
  orchestrator::PipelineConfig config;
  Figures figures;
  int runs = 0;  ///< Of steps 1 and 2.
  /// Why points were no candidates, and how many.
  std::map<std::string, int> refused;
};

/// Spaces of one rung: the runs are shared out evenly, and the best of all is the answer.
/// Error: no point could be run; the context has the most frequent reason.
Result<HillClimbed> hill_climb(std::span<const Space> spaces,
                               LayoutChooser& layouts,
                               const HillClimbOptions& options);

}  // namespace temper::study
