// Actors that are added to a run, or removed from it, while it continues (docs/how-to/resume.md).
// An added actor is launched like any other. A removed actor gets no new work: responses for
// training are requested back and continue elsewhere, it finishes the rest, and then its worker is
// told to end.
#pragma once

#include "orchestrator/scheduler/state/events.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

namespace temper::orchestrator {

void on_scaled(RunState& run, const event::Scaled& e);
/// Tells removed actors to end once they have no work left.
void retire_removed(RunState& run);

}  // namespace temper::orchestrator
