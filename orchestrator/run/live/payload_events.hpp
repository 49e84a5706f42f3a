// Converts messages with payloads to events of the scheduler, and validates them: a response with
// impossible values (actors/border/values.hpp) fails, with a reason that names the sender and the
// response, and the rest of the message counts. Payloads follow the scheduler's decision: only
// those of responses that the lease still holds are stored.
#pragma once

#include "actors/border/values.hpp"
#include "actors/protocol/weights.hpp"
#include "actors/protocol/work.hpp"
#include "orchestrator/run/payload_store.hpp"
#include "orchestrator/scheduler/queue/dist_queue.hpp"
#include "orchestrator/scheduler/state/events.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

/// The state against which an answer is validated.
struct AnswerContext {
  const DistQueue& queue;
  const PayloadStore& payloads;
  actors::ResponseLimits limits{};
  const AnswerContext* evaluation = nullptr;  ///< For answers under leases of an evaluation.
  const AnswerContext& of(LeaseId lease) const;
};

struct Sender {
  ActorId id;
  std::string_view name;
};

struct FailedResponse {
  LeaseId lease;
  ResponseId response;
  std::string why;  ///< Begins with the sender's name.
};

template <class E>
struct CheckedAnswer {
  E event;
  std::vector<FailedResponse> failed;  ///< In the event too; reported by the sender or invalid.
};

// --- The event of a message. Impossible values are removed from the message. Error: the number of
// answers differs from the number of responses in the lease.
CheckedAnswer<event::Generated> to_event(const Sender& sender,
                                         actors::Generated& message,
                                         const AnswerContext& held);
Result<CheckedAnswer<event::ReferenceScored>> to_event(const Sender& sender,
                                                       actors::ReferenceScored& message,
                                                       const AnswerContext& held);
Result<CheckedAnswer<event::Judged>> to_event(const Sender& sender,
                                              actors::Judged& message,
                                              const AnswerContext& held);
/// The i-th response of the message fails.
void fail_response(const Sender& sender,
                   actors::Generated& message,
                   std::size_t i,
                   const std::string& why,
                   CheckedAnswer<event::Generated>& told);

// --- Stores the payloads of responses that are still held. Requires: to_event() and
// find_invalid_claim() found no violation.
void keep(actors::Generated message, const DistQueue& queue, PayloadStore& payloads);
void keep(actors::ReferenceScored message, const DistQueue& queue, PayloadStore& payloads);
void keep(const actors::Judged& message, const DistQueue& queue, PayloadStore& payloads);
/// Stores the reasons of failed responses.
void keep(const std::vector<FailedResponse>& failed,
          const DistQueue& queue,
          PayloadStore& payloads);

/// Error NotFinite: a metric of the step is infinite or NaN.
Status check(actors::UpdateMetrics metrics);

}  // namespace temper::orchestrator
