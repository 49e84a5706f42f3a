// Adds the agent of the settings to the engine of a rollout worker.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "core/clock.hpp"
#include "rollout/engine.hpp"
#include "rollout/settings.hpp"

#include <memory>

namespace temper::rollout {

/// Returns `engine` if the settings have no agent. Errors: those of make_agent_engine(); a
/// tokenizer that cannot be read.
Result<std::unique_ptr<Engine>> with_agent(std::unique_ptr<Engine> engine,
                                           const actors::RoleConfig& role,
                                           const RolloutSettings& settings,
                                           const RealClock& clock);

}  // namespace temper::rollout
