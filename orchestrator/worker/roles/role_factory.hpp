// Creates the role that a worker receives in its Welcome: pins the process to its cores, creates
// the engine for the policy kind, and wraps it in its actor.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/runtime/role.hpp"

#include <memory>

namespace temper::orchestrator {

/// Errors: cores that this machine does not have, weights that cannot be read, `policy: torch` in a
/// build without torch.
Result<std::unique_ptr<actors::Role>> make_role(const actors::Welcome& welcome);

}  // namespace temper::orchestrator
