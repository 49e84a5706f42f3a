#include "orchestrator/run/live/payload_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Of a verifier's words.
constexpr std::size_t kLongestFailure = 200;

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

Status check_logprobs(ResponseId response, std::size_t tokens, const actors::LogprobBlob& blob) {
  if (tokens != blob.size()) {
    return invalid_input(
        fmt::format("response {}: {} tokens but {} log-probs", response, tokens, blob.size()));
  }
  if (!std::ranges::all_of(blob, [](float p) { return std::isfinite(p); }))
    return invalid_input(fmt::format("response {}: a log-prob is not a finite number", response));
  return {};
}

}  // namespace

Result<Event> to_event(ActorId actor,
                       const actors::Generated& message,
                       const DistQueue&,
                       const PayloadStore& payloads) {
  event::Generated event{actor, {}};
  event.items.reserve(message.items.size());
  for (const auto& item : message.items) {
    TEMPER_TRY_STATUS(check_logprobs(item.response, item.tokens.size(), item.logprobs));
    const GroupId group = payloads.group_id(item.response);
    const std::size_t prompt = payloads.has(group) ? payloads.group(group).prompt_tokens.size() : 0;
    event.items.push_back({item.lease,
                           item.response,
                           Tokens(static_cast<std::int64_t>(prompt)),
                           Tokens(static_cast<std::int64_t>(item.tokens.size())),
                           item.segments,
                           item.finish});
  }
  return Event(std::move(event));
}

void keep(actors::Generated message, const DistQueue& queue, PayloadStore& payloads) {
  for (auto& item : message.items) {
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
}

Result<Event> to_event(ActorId actor,
                       const actors::ReferenceScored& message,
                       const DistQueue& queue,
                       const PayloadStore& payloads) {
  TEMPER_TRY(const Lease* const lease,
             lease_of(queue, message.lease, message.logprobs.size(), "scored"));
  for (std::size_t i = 0; lease != nullptr && i < lease->responses.size(); ++i) {
    const ResponseId r = lease->responses[i];
    if (queue.holds(message.lease, r))
      TEMPER_TRY_STATUS(check_logprobs(r, payloads.response(r).tokens.size(), message.logprobs[i]));
  }
  return Event(event::ReferenceScored{actor, message.lease});
}

void keep(actors::ReferenceScored message, const DistQueue& queue, PayloadStore& payloads) {
  const Lease* lease = queue.find(message.lease);
  for (std::size_t i = 0; lease != nullptr && i < lease->responses.size(); ++i) {
    const ResponseId r = lease->responses[i];
    if (queue.holds(message.lease, r))
      payloads.response(r).reference = std::move(message.logprobs[i]);
  }
}

Result<Event> to_event(ActorId actor,
                       const actors::Judged& message,
                       const DistQueue& queue,
                       const PayloadStore&) {
  TEMPER_TRY_STATUS(lease_of(queue, message.lease, message.items.size(), "judged"));
  event::Judged event{actor, message.lease, {}};
  event.items.reserve(message.items.size());
  for (const auto& item : message.items) {
    event.items.push_back({item.reward, !item.failure.empty()});
    if (event.failure.empty())
      event.failure = item.failure.substr(0, kLongestFailure);
  }
  return Event(std::move(event));
}

void keep(const actors::Judged& message, const DistQueue& queue, PayloadStore& payloads) {
  const Lease* lease = queue.find(message.lease);
  for (std::size_t i = 0; lease != nullptr && i < lease->responses.size(); ++i) {
    if (queue.holds(message.lease, lease->responses[i]))
      payloads.response(lease->responses[i]).reward = message.items[i].reward;
  }
}

}  // namespace temper::orchestrator
