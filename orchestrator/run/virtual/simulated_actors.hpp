// The actors of simulated hardware, made from what they are told at launch: the same for a worker
// process and for a driver that hosts them itself.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "actors/simulation/simulated_actor.hpp"

#include <memory>

namespace temper::orchestrator {

/// Errors: settings that do not decode, a layout that the model or the cluster does not allow.
Result<std::unique_ptr<actors::SimulatedActor>> make_simulated_actor(
    const actors::RoleConfig& role);

}  // namespace temper::orchestrator
