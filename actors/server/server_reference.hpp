// The reference engine over an inference server: it is given the base weights once, and scores
// prompt and response by their prompt log-probs.
#pragma once

#include "actors/roles/reference_engine.hpp"
#include "actors/server/server.hpp"

namespace temper::actors {

/// Waits for the server and brings `weights` to it. Errors: it does not come, or does not take
/// them.
Result<std::unique_ptr<ReferenceEngine>> make_server_reference(std::unique_ptr<Server> server,
                                                               std::span<const std::byte> weights);

}  // namespace temper::actors
