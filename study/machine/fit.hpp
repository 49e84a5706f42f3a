// Fits the constants of a calibration to timings: sums of non-negative terms with the least
// relative error (every row has the same weight, whatever its duration).
#pragma once

#include "orchestrator/worker/timing/timing.hpp"
#include "study/machine/calibration.hpp"

#include <span>

namespace temper::study {

/// One observation: a value that should be the sum of counts times constants.
struct Observation {
  std::vector<double> counts;
  double value = 0;
};

struct LeastSquares {
  std::vector<double> constants;  ///< All are 0 or more.
  double error = 0;               ///< Mean relative error.
};

/// Requires: every observation has the same number of counts and a positive value. Constants that
/// the observations cannot separate share their contribution arbitrarily. Empty without
/// observations.
LeastSquares fit_positive(std::span<const Observation> observations);

/// Stores the constants of engines, weights, switches, reward, slowdowns and lengths in a
/// calibration, each with its record. Error: a kind that a forecast needs is missing.
Status fit_engines(const orchestrator::Timings& timings, MachineModel& calibration);

/// Messages that a process sent and received in a run, and their CPU time.
struct MessageCounts {
  std::string process;  ///< "orchestrator", or a role.
  double messages = 0, responses = 0;
  double cpu_us = 0;
};
void fit_messages(std::span<const MessageCounts> counts, MachineModel& calibration);

}  // namespace temper::study
