// Measures the time of messages and processes in short real runs of the same processes over the
// same sockets whose engines only wait (`policy: synthetic`): their remaining CPU time is for
// sending, receiving and logging. Processes sleep between messages as in a real run, because a
// process that slept takes longer to wake and to read than a busy one. These runs have their own
// settings (batch, step time, placement, bound), not those of predicted runs.
#pragma once

#include "orchestrator/metrics/run_metrics.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/record/sentences.hpp"
#include "study/machine/fit.hpp"

#include <filesystem>
#include <functional>

namespace temper::study {

/// Runs a configuration in config.run_dir.
using MakeRun = std::function<Result<orchestrator::RunEnd>(
    const orchestrator::PipelineConfig& config,
    const std::function<void(const orchestrator::RunMetrics&)>& on_update)>;

/// Fills calibration.processes, with its records. `folder`: keeps the folders of the runs. Error: a
/// run failed.
Status measure_processes(const orchestrator::PipelineConfig& config,
                         const MakeRun& run,
                         const std::filesystem::path& folder,
                         MachineModel& calibration);

}  // namespace temper::study
