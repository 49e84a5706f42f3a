// What each simulated actor is told at its launch.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "orchestrator/pipeline/resolve.hpp"

namespace temper::orchestrator {

/// Of a pipeline that is not simulated it is told nothing of simulated hardware.
actors::RoleConfig simulated_role_config(const ResolvedPipeline& pipeline, const ActorSpec& spec);

}  // namespace temper::orchestrator
