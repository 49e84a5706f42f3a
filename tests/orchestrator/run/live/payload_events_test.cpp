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
    actors::Generated::Item item;
    item.lease = lease;
    item.response = r;
    item.tokens = {7, 8};
    item.logprobs = {-1, -2};
    item.segments = {{PolicyVersion(0), Tokens(2)}};
    return item;
  }
  Held held() const { return {queue, payloads, {Tokens(6), 14}}; }
  template <class M>
  std::string refusal(const M& message) {
    const auto event = to_event(kActor, message, held());
    return event ? "" : event.error().context;
  }

  DistQueue queue;
  PayloadStore payloads;
  LeaseId lease;
};

TEST_F(Payloads, AResponseIsToldByItsLengthsAndKeptByItsTokens) {
  const actors::Generated message{{item(kFirst)}};
  const Event event = to_event(kActor, message, held()).value();
  const auto& told = std::get<event::Generated>(event).items.at(0);
  EXPECT_EQ(told.tokens, Tokens(2));
  EXPECT_EQ(told.prompt, Tokens(4));
  EXPECT_TRUE(payloads.response(kFirst).tokens.empty()) << "telling keeps nothing";
  keep(message, queue, payloads);
  EXPECT_EQ(payloads.response(kFirst).tokens, (actors::TokenBlob{7, 8}));
}

TEST_F(Payloads, AResponseThatCannotBeIsRefusedByName) {
  using Item = actors::Generated::Item;
  const auto refused = [&](auto change) {
    actors::Generated message{{item(kFirst)}};
    change(message.items.front());
    return refusal(message);
  };
  EXPECT_EQ(refused([](Item& i) { i.logprobs.pop_back(); }),
            "response 0: 2 tokens but 1 log-probs");
  EXPECT_EQ(refused([](Item& i) { i.logprobs.back() = kNaN; }),
            "response 0: log-probs or rewards that are not finite");
  EXPECT_EQ(refused([](Item& i) { i.mask = {1}; }),
            "response 0: 2 tokens but a mask of 1 and rewards of 0");
  EXPECT_EQ(refused([](Item& i) { i.tokens[0] = 14; }), "response 0: token 14; there are 14");
  EXPECT_EQ(refused([](Item& i) { i.tokens[0] = -1; }), "response 0: token -1; there are 14");
  EXPECT_EQ(refused([](Item& i) {
              i.tokens.assign(7, 4);
              i.logprobs.assign(7, -1);
            }),
            "response 0: 7 tokens, of which sampling.max_new_tokens allows 6");
}

TEST_F(Payloads, OfTwoAttemptsAreOneResponse) {
  keep({{item(kFirst)}}, queue, payloads);
  actors::Generated more{{item(kFirst)}};
  more.items[0].mask = {0, 1};
  more.items[0].rewards = {0.5F, 0};
  EXPECT_EQ(refusal(more), "");
  keep(more, queue, payloads);
  const ResponsePayload& p = payloads.response(kFirst);
  EXPECT_EQ(p.tokens, (actors::TokenBlob{7, 8, 7, 8}));
  EXPECT_EQ(p.mask, (actors::MaskBlob{1, 1, 0, 1}));
  EXPECT_EQ(p.token_rewards, (actors::LogprobBlob{0, 0, 0.5F, 0}));
  EXPECT_EQ(p.segments.size(), 2U);
  more.items[0].tokens = {1, 2, 3};
  more.items[0].logprobs = {-1, -1, -1};
  more.items[0].mask.clear();
  more.items[0].rewards.clear();
  EXPECT_EQ(refusal(more), "response 0: 7 tokens, of which sampling.max_new_tokens allows 6");
}

TEST_F(Payloads, RewardsAtTokensAddToWhatTheJudgeGives) {
  generate(Task::Reward);
  payloads.response(kFirst).token_rewards = {0.5F, 0.25F};
  const actors::Judged message{lease, {{1, ""}, {1, ""}}};
  const Event event = to_event(kActor, message, held()).value();
  EXPECT_EQ(std::get<event::Judged>(event).items.at(0).reward, 1.75);
  EXPECT_EQ(std::get<event::Judged>(event).items.at(1).reward, 1);
  keep(message, queue, payloads);
  EXPECT_EQ(payloads.response(kFirst).reward, 1.75);
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
  const Event event = to_event(kActor, message, held()).value();
  EXPECT_EQ(std::get<event::Generated>(event).items.at(0).prompt, Tokens(0));
}

TEST_F(Payloads, ReferenceScoresAreOnePerResponseAndToken) {
  generate(Task::Reference);
  EXPECT_EQ(refusal(actors::ReferenceScored{lease, {{-1, -2}}}),
            "lease 2 holds 2 responses, 1 were scored");
  EXPECT_EQ(refusal(actors::ReferenceScored{lease, {{-1, -2}, {-1}}}),
            "response 1: 1 reference log-probs for 2 tokens");
  EXPECT_EQ(refusal(actors::ReferenceScored{lease, {{-1, -2}, {-1, kNaN}}}),
            "response 1: reference log-probs that are not finite");
  const actors::ReferenceScored good{lease, {{-1, -2}, {-3, -4}}};
  EXPECT_EQ(refusal(good), "");
  keep(good, queue, payloads);
  EXPECT_EQ(payloads.response(kSecond).reference, (actors::LogprobBlob{-3, -4}));
}

TEST_F(Payloads, VerdictsAreOnePerResponseAndTheFirstFailureIsTold) {
  generate(Task::Reward);
  EXPECT_EQ(refusal(actors::Judged{lease, {{1, ""}}}), "lease 2 holds 2 responses, 1 were judged");
  const actors::Judged message{lease, {{1, ""}, {0, "it hangs"}}};
  const Event event = to_event(kActor, message, held()).value();
  EXPECT_EQ(std::get<event::Judged>(event).failure, "it hangs");
  EXPECT_TRUE(std::get<event::Judged>(event).items.at(1).failed);
  keep(message, queue, payloads);
  EXPECT_EQ(payloads.response(kFirst).reward, 1);
}

TEST_F(Payloads, AFailureIsToldInAFewWords) {
  generate(Task::Reward);
  const actors::Judged message{lease, {{0, std::string(100'000, 'x')}, {0, "y"}}};
  const Event event = to_event(kActor, message, held()).value();
  EXPECT_EQ(std::get<event::Judged>(event).failure, std::string(200, 'x'));
}

TEST(Metrics, OfAnUpdateAreFinite) {
  actors::UpdateMetrics metrics;
  EXPECT_TRUE(check(metrics));
  metrics.kl = std::numeric_limits<double>::infinity();
  EXPECT_EQ(check(metrics).error().context, "metrics of an update: kl is inf");
}

}  // namespace
}  // namespace temper::orchestrator
