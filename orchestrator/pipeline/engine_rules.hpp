// Rules of the engine of a role: servers, Python and commands.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

#include <string>

namespace temper::orchestrator {

/// Checks the engine of a role, unless it is native. `section`: the one that has the key `engine`.
void check_engine(const PipelineConfig& config,
                  actors::RoleKind role,
                  const std::string& section,
                  const actors::EngineConfig& engine,
                  std::int32_t replicas,
                  Rules& rules);

}  // namespace temper::orchestrator
