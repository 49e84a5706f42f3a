// Factories of the engines of `policy: torch`. In a build without torch they return an error
// (no_torch.cpp).
#pragma once

#include "actors/protocol/role_config.hpp"
#include "actors/roles/reference_engine.hpp"
#include "rollout/engine.hpp"
#include "rollout/settings.hpp"
#include "trainer/engine.hpp"
#include "trainer/settings.hpp"

#include <memory>

namespace temper::orchestrator {

/// Initializes the numerical library for this many cores, at most those of the machine. Call once,
/// before creating an engine.
void use_threads(std::size_t cores);

Result<std::unique_ptr<rollout::Engine>> make_torch_rollout(
    const actors::RoleConfig& role, const rollout::RolloutSettings& settings);
/// Starts from role.base_weights, then loads role.resume_from if given.
Result<std::unique_ptr<trainer::Engine>> make_torch_trainer(
    const actors::RoleConfig& role, const trainer::TrainerSettings& settings);
Result<std::unique_ptr<actors::ReferenceEngine>> make_torch_reference(
    const actors::RoleConfig& role, const trainer::TrainerSettings& settings);

}  // namespace temper::orchestrator
