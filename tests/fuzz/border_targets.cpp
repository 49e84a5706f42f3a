// What the roles of a run and its verifiers say, of any bytes.
#include "actors/border/values.hpp"
#include "actors/task/internal/command_slot.hpp"
#include "core/check.hpp"
#include "core/msgpack.hpp"
#include "orchestrator/run/live/payload_events.hpp"
#include "tests/fuzz/targets.hpp"

#include <algorithm>

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
    return;  // find_lie() refuses a response that is there twice
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

}  // namespace temper::fuzz
