// Creates the actors of simulated hardware from their role configuration: the same in a worker
// process and in a driver that hosts them.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "actors/simulation/simulated_actor.hpp"

#include <memory>

namespace temper::orchestrator {

/// Errors: settings that do not decode, a layout that the model or the cluster does not allow.
Result<std::unique_ptr<actors::SimulatedActor>> make_simulated_actor(
    const actors::RoleConfig& role);

}  // namespace temper::orchestrator
