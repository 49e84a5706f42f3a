// Messages that carry payloads: what they tell, what in them cannot be, and what of them is kept.
#include "orchestrator/run/live/payload_events.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace temper::orchestrator {
namespace {

constexpr ActorId kActor(0);
constexpr ResponseId kFirst(0), kSecond(1);
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// One group of two responses of two tokens, both leased for a task.
class Payloads : public ::testing::Test {
 protected:
  Payloads() : queue(true, 2, 100), payloads(2) {
    queue.add_group(GroupId(0), PolicyVersion(0));
    EXPECT_TRUE(
        payloads.add(GroupId(0), {"1+1=", "2"}, actors::Tokenizer::for_task(actors::TaskConfig())));
    lease = queue.lease(Task::Generate, kActor, {kFirst, kSecond}, Time(Duration(1)));
  }
  /// Both are generated, and leased for the task that follows.
  void generate(Task then) {
    for (const ResponseId r : {kFirst, kSecond}) {
      keep({{item(r)}}, queue, payloads);
      queue.commit(lease, r, Field::Response);
    }
    lease = queue.lease(then, kActor, {kFirst, kSecond}, Time(Duration(1)));
  }
  actors::Generated::Item item(ResponseId r) const {
    return {lease, r, {7, 8}, {-1, -2}, {{PolicyVersion(0), Tokens(2)}}};
  }
  template <class M>
  std::string refusal(const M& message) {
    const auto event = to_event(kActor, message, queue, payloads);
    return event ? "" : event.error().context;
  }

  DistQueue queue;
  PayloadStore payloads;
  LeaseId lease;
};

TEST_F(Payloads, AResponseIsToldByItsLengthsAndKeptByItsTokens) {
  const actors::Generated message{{item(kFirst)}};
  const Event event = to_event(kActor, message, queue, payloads).value();
  const auto& told = std::get<event::Generated>(event).items.at(0);
  EXPECT_EQ(told.tokens, Tokens(2));
  EXPECT_EQ(told.prompt, Tokens(4));
  EXPECT_TRUE(payloads.response(kFirst).tokens.empty()) << "telling keeps nothing";
  keep(message, queue, payloads);
  EXPECT_EQ(payloads.response(kFirst).tokens, (actors::TokenBlob{7, 8}));
}

TEST_F(Payloads, OneLogprobPerTokenOrItCannotBe) {
  actors::Generated message{{item(kFirst)}};
  message.items.front().logprobs.pop_back();
  EXPECT_EQ(refusal(message), "response 0: 2 tokens but 1 log-probs");
}

TEST_F(Payloads, ALogprobIsAFiniteNumberOrItCannotBe) {
  actors::Generated message{{item(kFirst)}};
  message.items.front().logprobs.back() = kNaN;
  EXPECT_EQ(refusal(message), "response 0: a log-prob is not a finite number");
}

TEST_F(Payloads, WhatIsNotHeldIsToldButNotKept) {
  actors::Generated message{{item(kFirst)}};
  message.items.front().lease = LeaseId(77);
  EXPECT_EQ(refusal(message), "");
  keep(message, queue, payloads);
  EXPECT_TRUE(payloads.response(kFirst).tokens.empty());
}

TEST_F(Payloads, OfAGroupThatHasLeftNothingIsKnown) {
  actors::Generated message{{item(ResponseId(1000))}};
  const Event event = to_event(kActor, message, queue, payloads).value();
  EXPECT_EQ(std::get<event::Generated>(event).items.at(0).prompt, Tokens(0));
}

TEST_F(Payloads, ReferenceScoresAreOnePerResponseAndToken) {
  generate(Task::Reference);
  EXPECT_EQ(refusal(actors::ReferenceScored{lease, {{-1, -2}}}),
            "lease 2 holds 2 responses, 1 were scored");
  EXPECT_EQ(refusal(actors::ReferenceScored{lease, {{-1, -2}, {-1}}}),
            "response 1: 2 tokens but 1 log-probs");
  EXPECT_EQ(refusal(actors::ReferenceScored{lease, {{-1, -2}, {-1, kNaN}}}),
            "response 1: a log-prob is not a finite number");
  const actors::ReferenceScored good{lease, {{-1, -2}, {-3, -4}}};
  EXPECT_EQ(refusal(good), "");
  keep(good, queue, payloads);
  EXPECT_EQ(payloads.response(kSecond).reference, (actors::LogprobBlob{-3, -4}));
}

TEST_F(Payloads, VerdictsAreOnePerResponseAndTheFirstFailureIsTold) {
  generate(Task::Reward);
  EXPECT_EQ(refusal(actors::Judged{lease, {{1, ""}}}), "lease 2 holds 2 responses, 1 were judged");
  const actors::Judged message{lease, {{1, ""}, {0, "it hangs"}}};
  const Event event = to_event(kActor, message, queue, payloads).value();
  EXPECT_EQ(std::get<event::Judged>(event).failure, "it hangs");
  EXPECT_TRUE(std::get<event::Judged>(event).items.at(1).failed);
  keep(message, queue, payloads);
  EXPECT_EQ(payloads.response(kFirst).reward, 1);
}

TEST_F(Payloads, AFailureIsToldInAFewWords) {
  generate(Task::Reward);
  const actors::Judged message{lease, {{0, std::string(100'000, 'x')}, {0, "y"}}};
  const Event event = to_event(kActor, message, queue, payloads).value();
  EXPECT_EQ(std::get<event::Judged>(event).failure, std::string(200, 'x'));
}

}  // namespace
}  // namespace temper::orchestrator
