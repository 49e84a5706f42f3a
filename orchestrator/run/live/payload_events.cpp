#include "orchestrator/run/live/payload_events.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
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

/// `more` behind `to`, which is about `before` tokens; what is empty stands for `all` of its
/// tokens.
template <class T>
void append(
    std::vector<T>& to, std::size_t before, const std::vector<T>& more, std::size_t n, T all) {
  if (to.empty() && more.empty())
    return;
  to.resize(before, all);
  to.insert(to.end(), more.begin(), more.end());
  to.resize(before + n, all);
}

void append(ResponsePayload& p, actors::Generated::Item& item) {
  if (p.tokens.empty() && !item.segments.empty())
    p.first_version = item.segments.front().version;
  const std::size_t before = p.tokens.size();
  const std::size_t n = item.tokens.size();
  append(p.mask, before, item.mask, n, std::uint8_t{1});
  append(p.token_rewards, before, item.rewards, n, 0.0F);
  p.segments.insert(p.segments.end(), item.segments.begin(), item.segments.end());
  if (before == 0) {
    p.tokens = std::move(item.tokens);
    p.logprobs = std::move(item.logprobs);
    return;
  }
  p.tokens.insert(p.tokens.end(), item.tokens.begin(), item.tokens.end());
  p.logprobs.insert(p.logprobs.end(), item.logprobs.begin(), item.logprobs.end());
}

}  // namespace

const Held& Held::of(LeaseId lease) const {
  return evaluation != nullptr && is_evaluation(lease) ? *evaluation : *this;
}

Result<Event> to_event(ActorId actor, const actors::Generated& message, const Held& all) {
  event::Generated event{actor, {}};
  event.items.reserve(message.items.size());
  for (const auto& item : message.items) {
    const Held& held = all.of(item.lease);
    const bool known = held.payloads.has(held.payloads.group_id(item.response));
    const bool of_use = known && held.queue.holds(item.lease, item.response);
    TEMPER_TRY_STATUS(
        check(item, of_use ? held.payloads.response(item.response).tokens.size() : 0, held.limits));
    const std::size_t prompt =
        known ? held.payloads.group_of(item.response).prompt_tokens.size() : 0;
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
    if (queue.holds(item.lease, item.response))
      append(payloads.response(item.response), item);
  }
}

Result<Event> to_event(ActorId actor, const actors::ReferenceScored& message, const Held& held) {
  TEMPER_TRY(const Lease* const lease,
             lease_of(held.queue, message.lease, message.logprobs.size(), "scored"));
  for (std::size_t i = 0; lease != nullptr && i < lease->responses.size(); ++i) {
    const ResponseId r = lease->responses[i];
    if (held.queue.holds(message.lease, r)) {
      TEMPER_TRY_STATUS(
          check_scores(message.logprobs[i], held.payloads.response(r).tokens.size(), r));
    }
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

namespace {

/// What an environment gave while the response was made.
double reward_at_tokens(ResponseId response, const PayloadStore& payloads) {
  if (!payloads.has(payloads.group_id(response)))
    return 0;
  const actors::LogprobBlob& rewards = payloads.response(response).token_rewards;
  return std::accumulate(rewards.begin(), rewards.end(), 0.0);
}

}  // namespace

Result<Event> to_event(ActorId actor, const actors::Judged& message, const Held& all) {
  const Held& held = all.of(message.lease);
  TEMPER_TRY_STATUS(lease_of(held.queue, message.lease, message.items.size(), "judged"));
  event::Judged event{
      .actor = actor, .lease = message.lease, .items = {}, .gave_up = message.gave_up};
  event.items.reserve(message.items.size());
  const Lease* lease = held.queue.find(message.lease);
  for (std::size_t i = 0; i < message.items.size(); ++i) {
    const auto& item = message.items[i];
    const double at_tokens =
        lease != nullptr ? reward_at_tokens(lease->responses[i], held.payloads) : 0;
    event.items.push_back({item.reward + at_tokens, !item.failure.empty()});
    if (event.failure.empty())
      event.failure = item.failure.substr(0, kLongestFailure);
  }
  return Event(std::move(event));
}

void keep(const actors::Judged& message, const DistQueue& queue, PayloadStore& payloads) {
  const Lease* lease = queue.find(message.lease);
  for (std::size_t i = 0; lease != nullptr && i < lease->responses.size(); ++i) {
    const ResponseId r = lease->responses[i];
    if (queue.holds(message.lease, r))
      payloads.response(r).reward = message.items[i].reward + reward_at_tokens(r, payloads);
  }
}

}  // namespace temper::orchestrator
