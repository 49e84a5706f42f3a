// When a checkpoint is saved, and when the run ends.
#pragma once

#include "orchestrator/scheduler/state/events.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

namespace temper::orchestrator {

/// Saves the checkpoint that is due, or ends a run that has nothing left to do.
void checkpoint_or_end(RunState& run);
/// True: it was saved.
bool on_saved(RunState& run, const event::CheckpointSaved& e);
/// The step in progress ends, then a checkpoint is saved, within `deadlines.drain`.
void on_stop_requested(RunState& run);

}  // namespace temper::orchestrator
