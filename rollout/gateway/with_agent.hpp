// The engine of a rollout worker, with the agent that its settings name.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "core/clock.hpp"
#include "rollout/engine.hpp"
#include "rollout/settings.hpp"

#include <memory>

namespace temper::rollout {

/// `engine` itself where the settings name no agent. Errors: as make_agent_engine(), and a
/// tokenizer that cannot be read.
Result<std::unique_ptr<Engine>> with_agent(std::unique_ptr<Engine> engine,
                                           const actors::RoleConfig& role,
                                           const RolloutSettings& settings,
                                           const RealClock& clock);

}  // namespace temper::rollout
