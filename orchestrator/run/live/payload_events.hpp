// From an actor's message that carries payloads to the scheduler's event. Payloads follow the
// scheduler's judgement: only what can be, and is still held under its lease, is stored.
#pragma once

#include "actors/protocol/work.hpp"
#include "orchestrator/run/payload_store.hpp"
#include "orchestrator/scheduler/events.hpp"
#include "orchestrator/scheduler/queue/dist_queue.hpp"

namespace temper::orchestrator {

// --- What a message tells. Errors: it does not have as many log-probs as tokens, or as many
// answers as its lease has responses, or one of its numbers is not finite.
Result<Event> to_event(ActorId actor,
                       const actors::Generated& message,
                       const DistQueue& queue,
                       const PayloadStore& payloads);
Result<Event> to_event(ActorId actor,
                       const actors::ReferenceScored& message,
                       const DistQueue& queue,
                       const PayloadStore& payloads);
Result<Event> to_event(ActorId actor,
                       const actors::Judged& message,
                       const DistQueue& queue,
                       const PayloadStore& payloads);

// --- Stores of its payloads what is still held. Requires: what it tells can be (find_lie).
void keep(actors::Generated message, const DistQueue& queue, PayloadStore& payloads);
void keep(actors::ReferenceScored message, const DistQueue& queue, PayloadStore& payloads);
void keep(const actors::Judged& message, const DistQueue& queue, PayloadStore& payloads);

}  // namespace temper::orchestrator
