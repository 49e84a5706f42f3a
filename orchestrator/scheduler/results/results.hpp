// Results of engines, references and verifiers, and which groups leave the run because of them:
// failed, filtered, or given up for their age.
#pragma once

#include "orchestrator/scheduler/dispatch/dispatcher.hpp"
#include "orchestrator/scheduler/evaluations/evaluations.hpp"
#include "orchestrator/scheduler/sharing/card_sharing.hpp"
#include "orchestrator/scheduler/state/events.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

namespace temper::orchestrator {

/// The parts that learn from results.
struct Learners {
  CardSharing& sharing;
  Dispatcher& dispatcher;
  Evaluations& evaluations;
};

void on_generated(RunState& run, const Learners& parts, const event::Generated& e);
void on_scored(RunState& run, const Learners& parts, const event::ReferenceScored& e);
void on_judged(RunState& run, const Learners& parts, const event::Judged& e);

/// Groups that the staleness rule gives up for their age.
void evict(RunState& run);

}  // namespace temper::orchestrator
