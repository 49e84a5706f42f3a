// A reference engine on an inference server. The server gets the base weights once, and scores
// prompt and response by prompt log-probs.
#pragma once

#include "actors/roles/reference_engine.hpp"
#include "actors/server/server.hpp"

namespace temper::actors {

/// Waits for the server and loads `weights`. Errors: the server does not become ready, or does not
/// accept the weights.
Result<std::unique_ptr<ReferenceEngine>> make_server_reference(std::unique_ptr<Server> server,
                                                               std::span<const std::byte> weights);

}  // namespace temper::actors
