// Why actors are idle.
#pragma once

#include "orchestrator/scheduler/sharing/card_sharing.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

namespace temper::orchestrator {

/// Reports each actor whose state or cause of waiting has changed.
void report_waits(RunState& run, const CardSharing& sharing);

}  // namespace temper::orchestrator
