// From an actor's message that carries payloads to the scheduler's event. This is the border: a
// response whose values are impossible (actors/border/values.hpp) fails, with a reason that names
// the sender and the response, and the rest of the message counts. Payloads follow the scheduler's
// judgement: only what is still held under its lease is stored.
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

/// What an answer is compared with.
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
  std::vector<FailedResponse> failed;  ///< In the event too; by the sender's word or by the border.
};

// --- What a message tells. Impossible values are taken out of it. Error: it does not have as many
// answers as its lease has responses.
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

// --- Stores of its payloads what is still held. Requires: to_event() and find_invalid_claim()
// found nothing.
void keep(actors::Generated message, const DistQueue& queue, PayloadStore& payloads);
void keep(actors::ReferenceScored message, const DistQueue& queue, PayloadStore& payloads);
void keep(const actors::Judged& message, const DistQueue& queue, PayloadStore& payloads);
/// Why these responses failed.
void keep(const std::vector<FailedResponse>& failed,
          const DistQueue& queue,
          PayloadStore& payloads);

/// Error: the first metric of an update that is not finite.
Status check(actors::UpdateMetrics metrics);

}  // namespace temper::orchestrator
