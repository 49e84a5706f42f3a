// From an actor's message that carries payloads to the scheduler's event. Payloads follow the
// scheduler's judgement: only what can be, and is still held under its lease, is stored.
#pragma once

#include "actors/protocol/work.hpp"
#include "orchestrator/run/live/checks.hpp"
#include "orchestrator/run/payload_store.hpp"
#include "orchestrator/scheduler/events.hpp"
#include "orchestrator/scheduler/queue/dist_queue.hpp"

namespace temper::orchestrator {

/// What an answer is held against.
struct Held {
  const DistQueue& queue;
  const PayloadStore& payloads;
  ResponseLimits limits{};
  const Held* evaluation = nullptr;  ///< What answers of an evaluation are held against.
  const Held& of(LeaseId lease) const;
};

// --- What a message tells. Errors: as check() and check_scores() have them; it does not have as
// many answers as its lease has responses.
Result<Event> to_event(ActorId actor, const actors::Generated& message, const Held& held);
Result<Event> to_event(ActorId actor, const actors::ReferenceScored& message, const Held& held);
Result<Event> to_event(ActorId actor, const actors::Judged& message, const Held& held);

// --- Stores of its payloads what is still held. Requires: what it tells can be (find_lie).
void keep(actors::Generated message, const DistQueue& queue, PayloadStore& payloads);
void keep(actors::ReferenceScored message, const DistQueue& queue, PayloadStore& payloads);
void keep(const actors::Judged& message, const DistQueue& queue, PayloadStore& payloads);

}  // namespace temper::orchestrator
