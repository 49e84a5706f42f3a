#include "orchestrator/run/live/payload_events.hpp"

#include <fmt/format.h>

#include <utility>

namespace temper::orchestrator {
namespace {

/// Null: the lease is void. Error: it holds another number of responses than `answers`.
Result<const Lease*> lease_of(const DistQueue& queue,
                              LeaseId id,
                              std::size_t answers,
                              std::string_view done) {
  const Lease* lease = queue.find(id);
  if (lease != nullptr && lease->responses.size() != answers) {
    return invalid_input(fmt::format(
        "lease {} holds {} responses, {} were {}", id, lease->responses.size(), answers, done));
  }
  return lease;
}

}  // namespace

Result<Event> store(ActorId actor,
                    actors::Generated message,
                    const DistQueue& queue,
                    PayloadStore& payloads) {
  event::Generated event{actor, {}};
  for (auto& item : message.items) {
    if (item.tokens.size() != item.logprobs.size()) {
      return invalid_input(fmt::format("response {}: {} tokens but {} log-probs",
                                       item.response,
                                       item.tokens.size(),
                                       item.logprobs.size()));
    }
    if (!payloads.has(payloads.group_id(item.response)))
      continue;
    const GroupPayload& group = payloads.group_of(item.response);
    event.items.push_back({item.lease,
                           item.response,
                           Tokens(static_cast<std::int64_t>(group.prompt_tokens.size())),
                           Tokens(static_cast<std::int64_t>(item.tokens.size())),
                           item.segments,
                           item.finish});
    if (!queue.holds(item.lease, item.response))
      continue;
    ResponsePayload& p = payloads.response(item.response);
    if (p.tokens.empty()) {
      if (!item.segments.empty())
        p.first_version = item.segments.front().version;
      p.tokens = std::move(item.tokens);
      p.logprobs = std::move(item.logprobs);
    } else {
      p.tokens.insert(p.tokens.end(), item.tokens.begin(), item.tokens.end());
      p.logprobs.insert(p.logprobs.end(), item.logprobs.begin(), item.logprobs.end());
    }
  }
  return Event(std::move(event));
}

Result<Event> store(ActorId actor,
                    actors::ReferenceScored message,
                    const DistQueue& queue,
                    PayloadStore& payloads) {
  TEMPER_TRY(const Lease* const lease,
             lease_of(queue, message.lease, message.logprobs.size(), "scored"));
  for (std::size_t i = 0; lease != nullptr && i < lease->responses.size(); ++i) {
    const ResponseId r = lease->responses[i];
    if (queue.holds(message.lease, r))
      payloads.response(r).reference = std::move(message.logprobs[i]);
  }
  return Event(event::ReferenceScored{actor, message.lease});
}

Result<Event> store(ActorId actor,
                    const actors::Judged& message,
                    const DistQueue& queue,
                    PayloadStore& payloads) {
  TEMPER_TRY(const Lease* const lease,
             lease_of(queue, message.lease, message.items.size(), "judged"));
  event::Judged event{actor, message.lease, {}};
  for (std::size_t i = 0; i < message.items.size(); ++i) {
    const auto& item = message.items[i];
    event.items.push_back({item.reward, !item.failure.empty()});
    if (lease != nullptr && queue.holds(message.lease, lease->responses[i]))
      payloads.response(lease->responses[i]).reward = item.reward;
  }
  return Event(std::move(event));
}

}  // namespace temper::orchestrator
