// What each simulated actor is told at its launch.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "actors/simulation/simulation_config.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

namespace temper::orchestrator {

/// `settings`: of the run, from resolve_simulation().
actors::RoleConfig simulated_role_config(const PipelineConfig& config,
                                         const ActorSpec& spec,
                                         const actors::SimulationSettings& settings);

}  // namespace temper::orchestrator
