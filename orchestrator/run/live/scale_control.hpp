// Scaling a running job (`temper scale`, docs/how-to/resume.md): reads requests from the run
// folder, validates them and changes the run's actors.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/run/live/live_options.hpp"
#include "orchestrator/run/live/live_workers.hpp"
#include "orchestrator/run/live/worker_clocks.hpp"
#include "orchestrator/run/scale_request.hpp"

#include <vector>

namespace temper::orchestrator {

class ScaleControl {
 public:
  /// The references outlive this.
  ScaleControl(const LiveOptions& options,
               RunCore& core,
               LiveWorkers& workers,
               WorkerClocks& clocks,
               const Log& log);

  /// Carries out a request if one waits. To be called now and then; it looks once per second.
  void look(Time now);

 private:
  Result<PipelineConfig> scaled_config(const ScaleRequest& request) const;
  Result<std::vector<SettingChange>> scale(const ScaleRequest& request);
  void change_actors(const std::vector<ActorSpec>& wanted);

  const LiveOptions& options_;
  RunCore& core_;
  LiveWorkers& workers_;
  WorkerClocks& clocks_;
  const Log log_;
  PipelineConfig config_;  ///< As in config.yaml.
  Time looked_{};
};

}  // namespace temper::orchestrator
