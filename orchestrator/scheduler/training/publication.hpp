// Weights on their way to the engines: staged in the background, committed, then a KV cache.
#pragma once

#include "orchestrator/scheduler/sharing/card_sharing.hpp"
#include "orchestrator/scheduler/state/events.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

namespace temper::orchestrator {

/// Sends each engine the version that it should have, as far as its cards allow.
void publish_weights(RunState& run, const CardSharing& sharing);

/// The reason if the engine is lost by it.
std::optional<Reason> on_staged(RunState& run, const event::WeightsStaged& e);
std::optional<Reason> on_committed(RunState& run, const event::WeightsCommitted& e);

}  // namespace temper::orchestrator
