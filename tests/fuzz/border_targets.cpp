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
  AnswerContext held() const { return {queue, payloads, {6, 14}}; }

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

void take(actors::ReferenceScored message) {
  Run run(Task::Reference);
  const auto told = to_event(kSender, message, run.held());
  if (!told)
    return;
  check_failures(*told);
  keep(told->failed, run.queue, run.payloads);
  keep(message, run.queue, run.payloads);
  if (message.lease != LeaseId(2))
    return;
  for (const ResponseId r : {kFirst, kSecond}) {
    const bool failed = std::ranges::find(told->event.failed, r) != told->event.failed.end();
    TEMPER_CHECK(failed || actors::check_scores(run.payloads.response(r).reference, 2),
                 "scores that are kept are possible");
  }
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
