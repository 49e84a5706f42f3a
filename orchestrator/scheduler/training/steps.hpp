// The trainer's steps: which batch is trained, under which certificate, and gradients that are
// computed before the batch is complete (stragglers.prepare). Groups whose gradients are requested
// early are promised to the next step; the step then takes the rest of the batch.
#pragma once

#include "orchestrator/scheduler/sharing/card_sharing.hpp"
#include "orchestrator/scheduler/state/events.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

namespace temper::orchestrator {

// --- Moves
/// Begins the next step if its batch is complete and the trainer may work.
void train(RunState& run, const CardSharing& sharing);
void prepare(RunState& run, const CardSharing& sharing);

// --- Events
/// True: it is the step in progress, which has ended.
bool on_trained(RunState& run, const event::Trained& e);
/// The groups of the batch return to the queue, where lost responses start over, and another step
/// may begin. True: it was the batch of a step.
bool on_tensors_lost(RunState& run, const event::TensorsLost& e);
/// Nothing but the prompt is left of these responses. Those that left, failed or are leased stay as
/// they are: a damaged log may name any.
void start_over(RunState& run, const std::vector<ResponseId>& lost);
/// The groups stay with the trainer until the step. Waiting for it has no deadline of its own,
/// since everything that the step waits for has one.
void on_prepared(RunState& run, const event::Prepared& e);

}  // namespace temper::orchestrator
