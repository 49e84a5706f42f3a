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

Result<Event> store(ActorId actor,
                    actors::Generated message,
                    const Judges& judges,
                    PayloadStore& payloads) {
  event::Generated event{actor, {}};
  const DistQueue& queue = judges.queue;
  for (auto& item : message.items) {
    if (!payloads.has(payloads.group_id(item.response)))
      continue;
    const GroupPayload& group = payloads.group_of(item.response);
    const Lease* lease = queue.find(item.lease);
    const bool held =
        lease != nullptr && lease->actor == actor && queue.holds(item.lease, item.response);
    if (held) {
      TEMPER_TRY_STATUS(check(item,
                              payloads.response(item.response).tokens.size(),
                              queue.group(queue.group_of(item.response))->dispatched,
                              judges.newest,
                              judges.limits));
    }
    event.items.push_back({item.lease,
                           item.response,
                           Tokens(static_cast<std::int64_t>(group.prompt_tokens.size())),
                           Tokens(static_cast<std::int64_t>(item.tokens.size())),
                           item.segments,
                           item.finish});
    if (held)
      append(payloads.response(item.response), item);
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
    if (!queue.holds(message.lease, r))
      continue;
    TEMPER_TRY_STATUS(check_scores(message.logprobs[i], payloads.response(r).tokens.size(), r));
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
    if (lease == nullptr || !queue.holds(message.lease, lease->responses[i]))
      continue;
    TEMPER_TRY_STATUS(check(item, lease->responses[i]));
    payloads.response(lease->responses[i]).reward = item.reward;
  }
  return Event(std::move(event));
}

}  // namespace temper::orchestrator
