// Creates the role of a worker that uses an inference server.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/runtime/role.hpp"

#include <memory>
#include <string>

namespace temper::orchestrator {

/// Waits for the server. `name`: name of the slot; its number selects the server. Errors: a role
/// for which a server cannot be used; a server that does not start or lacks a route.
Result<std::unique_ptr<actors::Role>> make_server_role(const actors::Welcome& welcome,
                                                       const std::string& name);

/// 3 for "rollout-3"; 0 for a name without a number.
std::size_t number_of_slot(const std::string& name);

}  // namespace temper::orchestrator
