// What a pipeline on this machine's cores would do, from a calibration of the machine: one run in
// this process and in virtual time, under the real scheduler, with actors that take the measured
// times (machine_host.hpp). The same figures as of a simulated run, and of a real one.
//
// What it takes from the configuration: everything that the scheduler decides by, the placement,
// the prompts of its task (their lengths, exactly), batch and minibatches. From the calibration:
// times, and the lengths of responses; so the calibration has to be of the same policy and
// sampling. Not forecast: what is learned (responses stay as long as they were when measured).
#pragma once

#include "study/machine/calibration.hpp"
#include "study/simulate/simulate.hpp"

namespace temper::study {

/// Whether its runs are of this machine's engines, which can be measured. Errors (InvalidInput): it
/// is of simulated hardware, or of a policy without engines; each with what applies.
Status check_of_this_machine(const orchestrator::PipelineConfig& config);

/// Whether this can be forecast with it. Errors (InvalidInput), each with the nearest that works:
/// hardware that is not local, a policy without engines, another model, sampling that gives other
/// lengths, threads that were not measured, more cores than the machine has.
Status check_forecastable(const orchestrator::PipelineConfig& config,
                          const MachineModel& calibration);

/// Errors: as check_forecastable(); the configuration breaks a rule; the run did not finish
/// (Internal, with its reason).
Result<Figures> forecast_run(const orchestrator::PipelineConfig& config,
                             const MachineModel& calibration);

/// Lengths that a forecast takes, such as those that a run had. Where one is not given: prompts of
/// the task, exactly, and responses as the calibration has them.
struct RecordedLengths {
  std::function<Tokens(GroupId)> prompt;
  std::function<Tokens(ResponseId, GroupId)> response;
};
Result<Figures> forecast_run(const orchestrator::PipelineConfig& config,
                             const MachineModel& calibration,
                             const RecordedLengths& lengths);

/// One result per configuration, in their order, whatever the number of threads, by which the
/// lengths are asked for at once.
std::vector<Result<Figures>> forecast_all(std::span<const orchestrator::PipelineConfig> configs,
                                          const MachineModel& calibration,
                                          const SimulateOptions& options,
                                          const RecordedLengths& lengths = {});

}  // namespace temper::study
