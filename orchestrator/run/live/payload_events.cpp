#include "orchestrator/run/live/payload_events.hpp"

#include "orchestrator/scheduler/queue/evaluation_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace temper::orchestrator {
namespace {

/// In events.log; the payload of the response keeps the whole text.
constexpr std::size_t kLongestFailure = 400;

/// Finds the fields of a described struct that are not finite.
struct FiniteCheck {
  template <class T>
  void field(int, std::string_view name, T& value, const std::type_identity_t<FieldMeta<T>>& = {}) {
    if constexpr (std::floating_point<T>) {
      if (!std::isfinite(value) && found.empty())
        found = fmt::format("{} is {}", name, value);
    }
  }
  std::string found;
};

std::string about(ResponseId response, std::string_view why) {
  return fmt::format("response {}: {}", response, why);
}

template <class E>
void note_failure(const Sender& sender,
                  LeaseId lease,
                  ResponseId response,
                  std::string_view why,
                  CheckedAnswer<E>& told) {
  std::string text = actors::bounded_text(fmt::format("{}: {}", sender.name, why));
  if (told.event.failure.empty())
    told.event.failure = actors::bounded_text(text, kLongestFailure);
  told.failed.push_back({lease, response, std::move(text)});
}

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

/// Appends `more`, which is about `n` tokens, to `to`, which is about `before` tokens. An empty
/// vector stands for `all` at each of its tokens.
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
  p.tensors = std::move(item.tensors);
  if (before == 0) {
    p.tokens = std::move(item.tokens);
    p.logprobs = std::move(item.logprobs);
    return;
  }
  p.tokens.insert(p.tokens.end(), item.tokens.begin(), item.tokens.end());
  p.logprobs.insert(p.logprobs.end(), item.logprobs.begin(), item.logprobs.end());
}

}  // namespace

const AnswerContext& AnswerContext::of(LeaseId lease) const {
  return evaluation != nullptr && is_evaluation(lease) ? *evaluation : *this;
}

void fail_response(const Sender& sender,
                   actors::Generated& message,
                   std::size_t i,
                   const std::string& why,
                   CheckedAnswer<event::Generated>& told) {
  actors::Generated::Item& item = message.items[i];
  const LeaseId lease = item.lease;
  const ResponseId response = item.response;
  std::vector<actors::Tensor> tensors = std::move(item.tensors);
  item = {};
  item.tensors = std::move(tensors);
  item.lease = lease;
  item.response = response;
  item.finish = actors::FinishReason::Failed;
  event::Generated::Item& said = told.event.items[i];
  said = {lease, response, said.prompt, Tokens(0), {}, actors::FinishReason::Failed};
  note_failure(sender, lease, response, why, told);
}

CheckedAnswer<event::Generated> to_event(const Sender& sender,
                                         actors::Generated& message,
                                         const AnswerContext& all) {
  CheckedAnswer<event::Generated> told{{sender.id, {}}, {}};
  told.event.items.reserve(message.items.size());
  for (std::size_t i = 0; i < message.items.size(); ++i) {
    const auto& item = message.items[i];
    const AnswerContext& held = all.of(item.lease);
    const bool known = held.payloads.has(held.payloads.group_id(item.response));
    const bool of_use = known && held.queue.holds(item.lease, item.response);
    const std::size_t prompt =
        known ? held.payloads.group_of(item.response).prompt_tokens.size() : 0;
    told.event.items.push_back({item.lease,
                                item.response,
                                Tokens(static_cast<std::int64_t>(prompt)),
                                Tokens(static_cast<std::int64_t>(item.tokens.size())),
                                item.segments,
                                item.finish});
    const std::size_t prefix =
        of_use ? held.payloads.response(item.response).tokens.size() : std::size_t{0};
    const Status possible = actors::check_response(
        {item.tokens, item.logprobs, item.mask, item.rewards}, prefix, held.limits);
    if (!possible) {
      fail_response(sender, message, i, about(item.response, possible.error().context), told);
    } else if (item.finish == actors::FinishReason::Failed) {
      note_failure(sender,
                   item.lease,
                   item.response,
                   about(item.response,
                         item.failure.empty() ? "its engine could not generate it" : item.failure),
                   told);
    }
  }
  return told;
}

void keep(actors::Generated message, const DistQueue& queue, PayloadStore& payloads) {
  for (auto& item : message.items) {
    if (queue.holds(item.lease, item.response))
      append(payloads.response(item.response), item);
  }
}

namespace {

/// Of item i of the message, about this response.
Status check_scores(const actors::ReferenceScored& message,
                    std::size_t i,
                    const ResponsePayload& response,
                    const actors::ResponseLimits& limits) {
  const std::size_t tokens = response.tokens.size();
  TEMPER_TRY_STATUS(actors::check_scores(message.logprobs[i], tokens));
  if (!message.top)
    return {};
  const actors::TopTokens& top = (*message.top)[i];
  return actors::check_top(top.ids, top.logprobs, tokens, limits);
}

}  // namespace

Result<CheckedAnswer<event::ReferenceScored>> to_event(const Sender& sender,
                                                       actors::ReferenceScored& message,
                                                       const AnswerContext& held) {
  TEMPER_TRY(const Lease* const lease,
             lease_of(held.queue, message.lease, message.logprobs.size(), "scored"));
  if (held.limits.top_k == 0)
    message.top.reset();
  else if (!message.top)
    message.top.emplace();
  if (message.top)
    message.top->resize(message.logprobs.size());
  CheckedAnswer<event::ReferenceScored> told{{sender.id, message.lease}, {}};
  for (std::size_t i = 0; lease != nullptr && i < lease->responses.size(); ++i) {
    const ResponseId r = lease->responses[i];
    if (!held.queue.holds(message.lease, r))
      continue;
    const Status possible = check_scores(message, i, held.payloads.response(r), held.limits);
    if (possible)
      continue;
    message.logprobs[i].clear();
    if (message.top)
      (*message.top)[i] = {};
    told.event.failed.push_back(r);
    note_failure(sender, message.lease, r, about(r, possible.error().context), told);
  }
  return told;
}

void keep(actors::ReferenceScored message, const DistQueue& queue, PayloadStore& payloads) {
  const Lease* lease = queue.find(message.lease);
  for (std::size_t i = 0; lease != nullptr && i < lease->responses.size(); ++i) {
    const ResponseId r = lease->responses[i];
    if (!queue.holds(message.lease, r))
      continue;
    ResponsePayload& p = payloads.response(r);
    p.reference = std::move(message.logprobs[i]);
    if (message.top)
      p.top = std::move((*message.top)[i]);
  }
}

namespace {

/// Error: a judge reports an impossible cost or count.
Status check(const std::optional<actors::JudgeUsage>& usage) {
  constexpr double kMost = 1e15;
  if (!usage)
    return {};
  const auto possible = [](auto value) {
    const auto number = static_cast<double>(value);
    return number >= 0 && number <= kMost;  // False for NaN.
  };
  if (possible(usage->requests) && possible(usage->cached) && possible(usage->retries) &&
      possible(usage->input_tokens) && possible(usage->output_tokens) && possible(usage->cost))
    return {};
  return invalid_input(
      fmt::format("usage of judges: expected numbers from 0 to {:g}, found {} requests, {} and {} "
                  "tokens, a cost of {}",
                  kMost,
                  usage->requests,
                  usage->input_tokens,
                  usage->output_tokens,
                  usage->cost));
}

/// The rewards that an environment gave during generation.
double reward_at_tokens(ResponseId response, const PayloadStore& payloads) {
  if (!payloads.has(payloads.group_id(response)))
    return 0;
  const actors::LogprobBlob& rewards = payloads.response(response).token_rewards;
  return std::accumulate(rewards.begin(), rewards.end(), 0.0);
}

}  // namespace

Result<CheckedAnswer<event::Judged>> to_event(const Sender& sender,
                                              actors::Judged& message,
                                              const AnswerContext& all) {
  const AnswerContext& held = all.of(message.lease);
  TEMPER_TRY(const Lease* const lease,
             lease_of(held.queue, message.lease, message.items.size(), "judged"));
  TEMPER_TRY_STATUS(actors::check_terms(message.terms, message.items.size()));
  TEMPER_TRY_STATUS(check(message.usage));
  CheckedAnswer<event::Judged> told{{.actor = sender.id,
                                     .lease = message.lease,
                                     .items = {},
                                     .gave_up = message.gave_up,
                                     .terms = message.terms,
                                     .usage = message.usage},
                                    {}};
  told.event.items.reserve(message.items.size());
  for (std::size_t i = 0; i < message.items.size(); ++i) {
    auto& item = message.items[i];
    const ResponseId response = lease == nullptr ? ResponseId() : lease->responses[i];
    if (lease != nullptr)
      item.reward += reward_at_tokens(response, held.payloads);
    if (const Status possible = actors::check_reward(item.reward); !possible) {
      if (item.failure.empty())
        item.failure = possible.error().context;
      item.reward = 0;
    }
    told.event.items.push_back({item.reward, !item.failure.empty()});
    if (!item.failure.empty() && lease != nullptr)
      note_failure(sender, message.lease, response, about(response, item.failure), told);
  }
  return told;
}

void keep(const actors::Judged& message, const DistQueue& queue, PayloadStore& payloads) {
  const Lease* lease = queue.find(message.lease);
  for (std::size_t i = 0; lease != nullptr && i < lease->responses.size(); ++i) {
    const ResponseId r = lease->responses[i];
    if (!queue.holds(message.lease, r) || !message.items[i].failure.empty())
      continue;
    payloads.response(r).reward = message.items[i].reward;
    payloads.response(r).terms = actors::rewards_at(message.terms, i);
  }
}

void keep(const std::vector<FailedResponse>& failed,
          const DistQueue& queue,
          PayloadStore& payloads) {
  for (const FailedResponse& f : failed) {
    if (queue.holds(f.lease, f.response))
      payloads.response(f.response).failure = f.why;
  }
}

Status check(actors::UpdateMetrics metrics) {
  FiniteCheck finite;
  describe(finite, metrics);
  if (!finite.found.empty())
    return Error{ErrorCode::NotFinite, "metrics of an update: " + finite.found};
  return {};
}

}  // namespace temper::orchestrator
