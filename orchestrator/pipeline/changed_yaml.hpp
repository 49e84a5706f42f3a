// A configuration without what is as it is by default.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"

#include <string>

namespace temper::orchestrator {

/// The keys that are not as they are by default: YAML that reads as the same configuration.
std::string changed_yaml(const PipelineConfig& config);

}  // namespace temper::orchestrator
