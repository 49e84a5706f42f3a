// What messages and processes take, from short real runs of the same processes over the same
// sockets whose engines only let time pass (`policy: synthetic`): the CPU time they use besides is
// for what they send, take and note down. Processes sleep between messages as they do in a run;
// one that has slept takes longer to wake and to read than one that is kept busy. Their settings
// (batch, step time, placement, bound) are their own and not those of runs that are predicted.
#pragma once

#include "orchestrator/metrics/run_metrics.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/record/sentences.hpp"
#include "study/machine/fit.hpp"

#include <filesystem>
#include <functional>

namespace temper::study {

/// Makes a real run in config.run_dir.
using MakeRun = std::function<Result<orchestrator::RunEnd>(
    const orchestrator::PipelineConfig& config,
    const std::function<void(const orchestrator::RunMetrics&)>& on_update)>;

/// Fills calibration.processes, with its records. `folder`: for the runs' own folders; they are
/// left there. Error: a run that did not end well.
Status measure_processes(const orchestrator::PipelineConfig& config,
                         const MakeRun& run,
                         const std::filesystem::path& folder,
                         MachineModel& calibration);

}  // namespace temper::study
