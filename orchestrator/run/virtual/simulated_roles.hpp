// The role configuration of each simulated actor.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "orchestrator/pipeline/resolve.hpp"

namespace temper::orchestrator {

/// Without simulated hardware if the pipeline is not simulated.
actors::RoleConfig simulated_role_config(const ResolvedPipeline& pipeline, const ActorSpec& spec);

}  // namespace temper::orchestrator
