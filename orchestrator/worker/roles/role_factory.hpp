// Builds the role a worker was welcomed as: pins the process to its cards, makes the engine that
// the policy kind asks for, and wraps it in its actor.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/runtime/role.hpp"

#include <memory>

namespace temper::orchestrator {

/// Errors: cores this machine does not have, weights that cannot be read, `policy: torch` in a
/// build without torch.
Result<std::unique_ptr<actors::Role>> make_role(const actors::Welcome& welcome);

}  // namespace temper::orchestrator
