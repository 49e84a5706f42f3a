// A configuration reduced to the keys that differ from their defaults.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"

#include <string>

namespace temper::orchestrator {

/// YAML of the keys that differ from their defaults. Reading it gives the same configuration.
std::string changed_yaml(const PipelineConfig& config);

}  // namespace temper::orchestrator
