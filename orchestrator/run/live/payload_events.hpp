// From an actor's message that carries payloads to the scheduler's event. Payloads follow the
// scheduler's judgement: only what is still held under its lease is stored.
#pragma once

#include "actors/protocol/work.hpp"
#include "orchestrator/run/live/checks.hpp"
#include "orchestrator/run/payload_store.hpp"
#include "orchestrator/scheduler/events.hpp"
#include "orchestrator/scheduler/queue/dist_queue.hpp"

namespace temper::orchestrator {

/// What a generated response is held against.
struct Judges {
  const DistQueue& queue;
  PolicyVersion newest;  ///< Published so far.
  ResponseLimits limits;
};

/// Error: a response that cannot be (check()).
Result<Event> store(ActorId actor,
                    actors::Generated message,
                    const Judges& judges,
                    PayloadStore& payloads);
/// Error: the lease holds another number of responses than were scored, or check_scores().
Result<Event> store(ActorId actor,
                    actors::ReferenceScored message,
                    const DistQueue& queue,
                    PayloadStore& payloads);
/// Error: the lease holds another number of responses than were judged, or check().
Result<Event> store(ActorId actor,
                    const actors::Judged& message,
                    const DistQueue& queue,
                    PayloadStore& payloads);

}  // namespace temper::orchestrator
