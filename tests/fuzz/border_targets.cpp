// What the roles of a run, its verifiers, its agents and `temper scale` say, of any bytes.
#include "actors/border/values.hpp"
#include "actors/task/internal/command_slot.hpp"
#include "core/check.hpp"
#include "core/msgpack.hpp"
#include "core/yaml.hpp"
#include "orchestrator/run/live/payload_events.hpp"
#include "orchestrator/run/scale_request.hpp"
#include "rollout/gateway/gateway_api.hpp"
#include "tests/fuzz/targets.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace temper::fuzz {
namespace {

using namespace orchestrator;
using actors::FinishReason;

constexpr Sender kSender{ActorId(0), "rollout-0"};
constexpr ResponseId kFirst(0), kSecond(1);

/// A group of two responses; the answers of engines are for lease 1, all others for lease 2.
struct Run {
  explicit Run(Task task) {
    queue.add_group(GroupId(0), PolicyVersion(0));
    TEMPER_CHECK(payloads.add(GroupId(0), {"1+1=", "2"}, actors::Tokenizer::for_task({})),
                 "a prompt can be added");
    LeaseId lease = queue.lease(Task::Generate, kSender.id, {kFirst, kSecond}, Time(Duration(1)));
    if (task == Task::Generate)
      return;
    for (const ResponseId r : {kFirst, kSecond}) {
      payloads.response(r).tokens = {7, 8};
      payloads.response(r).token_rewards = {0.5F, -0.25F};
      queue.commit(lease, r, Field::Response);
    }
    lease = queue.lease(task, kSender.id, {kFirst, kSecond}, Time(Duration(1)));
  }
  AnswerContext held(std::size_t top_k = 0) const { return {queue, payloads, {6, 14, top_k}}; }

  DistQueue queue{true, 2, 100};
  PayloadStore payloads{2};
};

template <class E>
void check_failures(const CheckedAnswer<E>& told) {
  TEMPER_CHECK(told.failed.empty() == told.event.failure.empty(), "a failure has a reason");
  for (const FailedResponse& f : told.failed) {
    TEMPER_CHECK(f.why.starts_with("rollout-0: "), "a failure names its sender");
    TEMPER_CHECK(f.why.size() <= actors::kLongestText + 32, "a reason is bounded");
  }
}

void take(actors::Generated message) {
  Run run(Task::Generate);
  const auto told = to_event(kSender, message, run.held());
  check_failures(told);
  TEMPER_CHECK(told.event.items.size() == message.items.size(), "every answer is told");
  for (std::size_t i = 0; i < message.items.size(); ++i) {
    const auto& item = message.items[i];
    const Status possible =
        actors::check_response({item.tokens, item.logprobs, item.mask, item.rewards}, 0, {6, 14});
    TEMPER_CHECK(possible, "what is left of a message is possible");
    TEMPER_CHECK(std::cmp_equal(told.event.items[i].tokens.count(), item.tokens.size()) &&
                     told.event.items[i].finish == item.finish,
                 "the event is that of the message");
  }
  if (message.items.size() > 1)
    return;  // find_invalid_claim() refuses a response that is there twice
  keep(told.failed, run.queue, run.payloads);
  keep(std::move(message), run.queue, run.payloads);
}

void take_scores(actors::ReferenceScored message, std::size_t top_k) {
  Run run(Task::Reference);
  const auto told = to_event(kSender, message, run.held(top_k));
  if (!told)
    return;
  check_failures(*told);
  keep(told->failed, run.queue, run.payloads);
  keep(message, run.queue, run.payloads);
  if (message.lease != LeaseId(2))
    return;
  for (const ResponseId r : {kFirst, kSecond}) {
    const bool failed = std::ranges::find(told->event.failed, r) != told->event.failed.end();
    const ResponsePayload& kept = run.payloads.response(r);
    TEMPER_CHECK(failed || actors::check_scores(kept.reference, 2),
                 "scores that are kept are possible");
    const actors::TopTokens top = kept.top.value_or(actors::TopTokens());
    TEMPER_CHECK(failed || actors::check_top(top.ids, top.logprobs, 2, run.held(top_k).limits),
                 "top tokens that are kept are possible");
  }
}

void take(const actors::ReferenceScored& message) {
  for (const std::size_t top_k : {0U, 1U})
    take_scores(message, top_k);
}

void take(actors::Judged message) {
  Run run(Task::Reward);
  const auto told = to_event(kSender, message, run.held());
  if (!told)
    return;
  if (message.lease == LeaseId(2))
    check_failures(*told);
  for (const auto& item : told->event.items)
    TEMPER_CHECK(actors::check_reward(item.reward), "a reward that is told is possible");
  keep(told->failed, run.queue, run.payloads);
  keep(message, run.queue, run.payloads);
}

/// Choices by the bytes of an input: each takes one byte, and is the first one after the last byte.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : rest_(bytes) {}

  std::size_t below(std::size_t end) {
    if (rest_.empty())
      return 0;
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return byte % end;
  }
  /// About n; mostly n itself.
  std::size_t near(std::size_t n) {
    const std::size_t choice = below(16);
    return choice == 1 ? n + 1 : choice == 2 && n > 0 ? n - 1 : choice == 3 ? 0 : n;
  }
  /// n of these values; in most of the lists only of the first `possible` ones.
  template <class T, std::size_t N>
  std::vector<T> list_of(const std::array<T, N>& values, std::size_t possible, std::size_t n) {
    const std::size_t end = below(4) == 3 ? N : possible;
    std::vector<T> list(n);
    for (T& value : list)
      value = values[below(end)];
    return list;
  }

 private:
  std::string_view rest_;
};

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::array kLogprobs{-1.0F,
                               -0.0F,
                               -99.5F,
                               0.0005F,
                               0.002F,
                               -100.5F,
                               -1e5F,
                               -2e5F,
                               5.0F,
                               -3e38F,
                               3e38F,
                               1e-45F,
                               NAN,
                               kInfinity,
                               -kInfinity};
constexpr std::array kRewards{
    0.0F, 1.0F, -0.5F, 9e17F, 1.1e18F, -3e38F, 1e-45F, NAN, kInfinity, -kInfinity};
constexpr std::array<std::int32_t, 8> kTokens{0, 7, 13, 14, -1, 1 << 30, INT32_MAX, INT32_MIN};
constexpr std::array<std::uint8_t, 4> kMasks{1, 0, 2, 255};

actors::Generated drawn_generated(Choices& choices) {
  actors::Generated message;
  actors::Generated::Item& item = message.items.emplace_back();
  item.lease = LeaseId(choices.near(1));
  item.response = ResponseId(choices.below(2));
  const std::size_t tokens = choices.near(1 + choices.below(6));
  item.tokens = choices.list_of(kTokens, 3, tokens);
  item.logprobs = choices.list_of(kLogprobs, 4, choices.near(tokens));
  if (choices.below(2) == 1)
    item.mask = choices.list_of(kMasks, 2, choices.near(tokens));
  if (choices.below(2) == 1)
    item.rewards = choices.list_of(kRewards, 4, choices.near(tokens));
  item.segments = {{PolicyVersion(choices.below(2)), Tokens(static_cast<Tokens::rep>(tokens))}};
  item.finish = std::array{FinishReason::End,
                           FinishReason::Length,
                           FinishReason::Interrupted,
                           FinishReason::Failed}[choices.below(4)];
  item.failure = std::string(choices.below(4) == 3 ? 5000 : 0, static_cast<char>(0xc3));
  return message;
}

actors::ReferenceScored drawn_scores(Choices& choices) {
  actors::ReferenceScored message{LeaseId(choices.near(2)), {}};
  message.logprobs.resize(choices.near(2));
  for (auto& scores : message.logprobs)
    scores = choices.list_of(kLogprobs, 4, choices.near(2));
  return message;
}

actors::Judged drawn_rewards(Choices& choices) {
  actors::Judged message{LeaseId(choices.near(2)), {}};
  message.items.resize(choices.near(2));
  for (auto& item : message.items) {
    item.reward = choices.list_of(kRewards, 4, 1).front();
    item.failure = std::string(choices.below(4) == 3 ? 5000 : 0, 'x');
  }
  message.gave_up = choices.below(8) == 7;
  return message;
}

template <class M>
void take_as(std::string_view bytes) {
  if (auto message = decode<M>(bytes))
    take(*std::move(message));
}

}  // namespace

void answers(std::string_view bytes) {
  if (bytes.empty())
    return;
  const auto choice = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  if (choice % 3 == 0)
    return take_as<actors::Generated>(bytes);
  if (choice % 3 == 1)
    return take_as<actors::ReferenceScored>(bytes);
  take_as<actors::Judged>(bytes);
}

void drawn_answers(std::string_view bytes) {
  Choices choices(bytes);
  const std::size_t which = choices.below(4);
  if (which == 1)
    return take(drawn_scores(choices));
  if (which == 2)
    return take(drawn_rewards(choices));
  take(drawn_generated(choices));
}

void verdict(std::string_view bytes) {
  const auto reward = actors::parse_reply(bytes);
  if (reward)
    TEMPER_CHECK(actors::check_reward(*reward), "a reward that is read is possible");
}

void agent_request(std::string_view bytes) {
  using rollout::GatewayRoute;
  static const actors::Tokenizer tokenizer = actors::Tokenizer::for_task({});
  if (bytes.empty())
    return;
  const auto choice = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  if (choice % 4 == 3) {
    const auto target = rollout::parse_target(bytes);
    TEMPER_CHECK(!target || target->session.find_first_of("/?") == std::string::npos,
                 "a session is one part of a path");
    return;
  }
  constexpr std::array kTurns{
      GatewayRoute::Completions, GatewayRoute::Chat, GatewayRoute::Generate};
  const auto turn = rollout::parse_turn(kTurns[choice % 4], bytes, {}, tokenizer);
  if (!turn)
    return;
  const auto possible = [&](std::int32_t token) {
    return token >= 0 && token < tokenizer.vocabulary();
  };
  TEMPER_CHECK(!turn->tokens || std::ranges::all_of(*turn->tokens, possible),
               "token ids of a context are of the vocabulary");
  TEMPER_CHECK(std::ranges::all_of(turn->stops, possible), "so is what ends a turn");
  TEMPER_CHECK(turn->most.value_or(Tokens(1)) >= Tokens(1), "a turn has a token at least");
}

void scale_request(std::string_view bytes) {
  const auto request = parse_request(bytes);
  if (!request)
    return;
  TEMPER_CHECK(request->rollout.value_or(1) >= 1 && request->reference.value_or(0) >= 0 &&
                   request->reward.value_or(1) >= 1,
               "numbers of actors that are read are possible");
  for (const auto& number : {request->rollout, request->reference, request->reward})
    TEMPER_CHECK(number.value_or(0) <= 4096, "and bounded");
  const auto again = parse_request(to_yaml(*request));
  TEMPER_CHECK(again && *again == *request, "a request is read as it was written");
}

}  // namespace temper::fuzz
