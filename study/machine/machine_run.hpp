// Forecasts a run on this machine's cores from a calibration of the machine: one run in this
// process in virtual time, with the real scheduler and actors that take the measured times
// (machine_host.hpp). Its figures are those of a simulated or a real run.
//
// From the configuration it uses everything that the scheduler's decisions depend on, the
// placement, the prompts of its task (exact lengths), batch and minibatches. From the calibration
// it uses times and response lengths, so the calibration must have the same policy and sampling.
// Learning is not forecast: responses keep the measured lengths.
#pragma once

#include "study/machine/calibration.hpp"
#include "study/simulate/simulate.hpp"

namespace temper::study {

/// Whether runs of this configuration use this machine's engines, which can be measured. Errors
/// (InvalidInput): simulated hardware; a policy without engines. Each says what to use instead.
Status check_of_this_machine(const orchestrator::PipelineConfig& config);

/// Whether this calibration can forecast the configuration. Errors (InvalidInput), each with the
/// nearest valid value: simulated hardware, a policy without engines, another model, sampling with
/// other lengths, an agent without `simulation.tools`, an unmeasured number of threads, more cores
/// than the machine has.
Status check_forecastable(const orchestrator::PipelineConfig& config,
                          const MachineModel& calibration);

/// Errors: as check_forecastable(); an invalid configuration; the run did not finish (Internal,
/// with its reason).
Result<Figures> forecast_run(const orchestrator::PipelineConfig& config,
                             const MachineModel& calibration);

/// Lengths to use in a forecast, such as recorded ones. Defaults: exact prompts of the task, and
/// response lengths of the calibration.
struct RecordedLengths {
  std::function<Tokens(GroupId)> prompt;
  std::function<Tokens(ResponseId, GroupId)> response;
};
Result<Figures> forecast_run(const orchestrator::PipelineConfig& config,
                             const MachineModel& calibration,
                             const RecordedLengths& lengths);

/// One result per configuration, in their order, independent of the number of threads. Requires:
/// the length functions are safe to call from several threads.
std::vector<Result<Figures>> forecast_all(std::span<const orchestrator::PipelineConfig> configs,
                                          const MachineModel& calibration,
                                          const SimulateOptions& options,
                                          const RecordedLengths& lengths = {});

}  // namespace temper::study
