// Rules of the problems of a task: task.path, task.sources and task.set_aside.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

namespace temper::orchestrator {

/// Whether a source, or a teacher, may have this name.
bool is_source_name(const std::string& name);

/// Checks the names, the data and the weights of the sources, and that some source has a weight at
/// every step.
void check_sources(const PipelineConfig& config, Rules& rules);

}  // namespace temper::orchestrator
