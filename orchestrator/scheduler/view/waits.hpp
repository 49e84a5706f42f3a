// Why actors are idle.
#pragma once

#include "orchestrator/scheduler/sharing/card_sharing.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

namespace temper::orchestrator {

/// Reports each actor whose state or cause of waiting has changed. `held_until`: dispatch holds a
/// group back until then.
void report_waits(RunState& run, const CardSharing& sharing, std::optional<Time> held_until);

}  // namespace temper::orchestrator
