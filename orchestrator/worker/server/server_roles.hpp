// Builds the role of a worker whose work an inference server does.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/runtime/role.hpp"

#include <memory>
#include <string>

namespace temper::orchestrator {

/// Waits for the server. `name`: of the slot; its number says which of the servers it is. Errors: a
/// role that no server can do, a server that does not come or lacks a route.
Result<std::unique_ptr<actors::Role>> make_server_role(const actors::Welcome& welcome,
                                                       const std::string& name);

/// 3 for "rollout-3"; 0 where a name has no number.
std::size_t number_of_slot(const std::string& name);

}  // namespace temper::orchestrator
