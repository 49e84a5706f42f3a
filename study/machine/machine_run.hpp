// What a pipeline on this machine's cores would do, from a calibration of the machine: one run in
// this process and in virtual time, under the real scheduler, with actors that take the measured
// times (machine_host.hpp). The same figures as of a simulated run, and of a real one.
//
// What it takes from the configuration: everything that the scheduler decides by, the placement,
// the prompts of its task (their lengths, exactly), batch and minibatches. From the calibration:
// times, and the lengths of responses; so the calibration has to be of the same policy and
// sampling. Not predicted: what is learned (responses stay as long as they were when measured).
#pragma once

#include "study/machine/calibration.hpp"
#include "study/simulate/simulate.hpp"

namespace temper::study {

/// Whether this can be predicted with it. Errors (InvalidInput), each with the nearest that works:
/// hardware that is not local, a policy without engines, another model, sampling that gives other
/// lengths, threads that were not measured, more cores than the machine has.
Status check_predictable(const orchestrator::PipelineConfig& config,
                         const LocalCalibration& calibration);

/// Errors: as check_predictable(); the configuration breaks a rule; the run did not finish
/// (Internal, with its reason).
Result<Figures> predict_local(const orchestrator::PipelineConfig& config,
                              const LocalCalibration& calibration);

/// Lengths that a prediction takes in place of the calibration's: those that a run had.
struct RecordedLengths {
  std::function<Tokens(GroupId)> prompt;
  std::function<Tokens(ResponseId, GroupId)> response;
};
Result<Figures> predict_local(const orchestrator::PipelineConfig& config,
                              const LocalCalibration& calibration,
                              const RecordedLengths& lengths);

/// One result per configuration, in their order, whatever the number of threads.
std::vector<Result<Figures>> predict_all(std::span<const orchestrator::PipelineConfig> configs,
                                         const LocalCalibration& calibration,
                                         const SimulateOptions& options);

}  // namespace temper::study
