// Constants of a calibration from what was timed: sums of terms that are never negative, fitted so
// that the relative errors are least (each row weighs the same, whatever it lasts).
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
  std::vector<double> constants;  ///< None is negative.
  double error = 0;               ///< Mean relative error.
};

/// Requires: every observation has as many counts as the first, and a positive value.
/// Constants that nothing tells apart share what they explain in some way; none where no
/// observation is.
LeastSquares fit_positive(std::span<const Observation> observations);

/// Puts the engines' constants, weights, switches, reward, slowdowns and lengths into a
/// calibration, each with its record. Error: a kind that a forecast needs is not there.
Status fit_engines(const orchestrator::Timings& timings, MachineModel& calibration);

/// What a process sent and took in a run, and the CPU time that it cost.
struct MessageCounts {
  std::string process;  ///< "orchestrator", or a role.
  double messages = 0, responses = 0;
  double cpu_us = 0;
};
void fit_messages(std::span<const MessageCounts> counts, MachineModel& calibration);

}  // namespace temper::study
