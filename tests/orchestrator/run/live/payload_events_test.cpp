// Messages that carry payloads: what they tell, what in them cannot be, and what of them is kept.
#include "orchestrator/run/live/payload_events.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace temper::orchestrator {
namespace {

constexpr ActorId kActor(0);
constexpr Sender kSender{kActor, "rollout-3"};
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
  AnswerContext held() const { return {queue, payloads, {6, 14}}; }
  /// What the message tells. Requires: it has an answer for each response.
  CheckedAnswer<event::Generated> told(actors::Generated& message) {
    return to_event(kSender, message, held());
  }
  template <class M>
  auto told(M& message) {
    return to_event(kSender, message, held()).value();
  }
  template <class M>
  std::string refusal(M message) {
    const auto event = to_event(kSender, message, held());
    return event ? "" : event.error().context;
  }

  DistQueue queue;
  PayloadStore payloads;
  LeaseId lease;
};

TEST_F(Payloads, AResponseIsToldByItsLengthsAndKeptByItsTokens) {
  actors::Generated message{{item(kFirst)}};
  const event::Generated event = told(message).event;
  EXPECT_EQ(event.items.at(0).tokens, Tokens(2));
  EXPECT_EQ(event.items.at(0).prompt, Tokens(4));
  EXPECT_TRUE(payloads.response(kFirst).tokens.empty()) << "telling keeps nothing";
  keep(message, queue, payloads);
  EXPECT_EQ(payloads.response(kFirst).tokens, (actors::TokenBlob{7, 8}));
}

TEST_F(Payloads, AnImpossibleResponseFailsAloneAndItsSenderIsNamed) {
  using Item = actors::Generated::Item;
  const std::vector<std::function<void(Item&)>> changes{
      [](Item& i) { i.logprobs.pop_back(); },
      [](Item& i) { i.logprobs.back() = kNaN; },
      [](Item& i) { i.logprobs.back() = 5; },
      [](Item& i) { i.logprobs.back() = -1000; },
      [](Item& i) { i.logprobs.front() = -3e38F; },
      [](Item& i) { i.mask = {1}; },
      [](Item& i) {
        i.mask = {1, 7};
      },
      [](Item& i) {
        i.rewards = {3e38F, 0};
      },
      [](Item& i) { i.tokens[0] = 14; },
      [](Item& i) { i.tokens[0] = -1; },
      [](Item& i) {
        i.tokens.assign(7, 4);
        i.logprobs.assign(7, -1);
      },
  };
  for (const auto& change : changes) {
    actors::Generated message{{item(kFirst), item(kSecond)}};
    change(message.items.front());
    const auto told = this->told(message);
    ASSERT_EQ(told.failed.size(), 1U);
    EXPECT_EQ(told.failed[0].response, kFirst);
    EXPECT_TRUE(told.failed[0].why.starts_with("rollout-3: response 0: ")) << told.failed[0].why;
    EXPECT_EQ(told.event.failure, told.failed[0].why);
    EXPECT_EQ(told.event.items[0].finish, actors::FinishReason::Failed);
    EXPECT_EQ(told.event.items[0].tokens, Tokens(0));
    EXPECT_TRUE(told.event.items[0].segments.empty());
    EXPECT_EQ(told.event.items[0].lease, lease);
    EXPECT_EQ(told.event.items[1].finish, actors::FinishReason::End);
    EXPECT_EQ(told.event.items[1].tokens, Tokens(2));
    keep(told.failed, queue, payloads);
    keep(message, queue, payloads);
    EXPECT_TRUE(payloads.response(kFirst).tokens.empty());
    EXPECT_EQ(payloads.response(kFirst).failure, told.failed[0].why);
    EXPECT_EQ(payloads.response(kSecond).failure, "");
    payloads.response(kSecond) = {};
  }
}

TEST_F(Payloads, AResponseThatItsEngineFailedIsToldWithTheReason) {
  actors::Generated message{{item(kFirst), item(kSecond)}};
  message.items[0].finish = message.items[1].finish = actors::FinishReason::Failed;
  message.items[0].failure = "status 400: too long";
  const auto told = this->told(message);
  ASSERT_EQ(told.failed.size(), 2U);
  EXPECT_EQ(told.failed[0].why, "rollout-3: response 0: status 400: too long");
  EXPECT_EQ(told.event.failure, told.failed[0].why);
  EXPECT_NE(told.failed[1].why, "rollout-3: response 1: ");
}

TEST_F(Payloads, OfTwoAttemptsAreOneResponse) {
  keep({{item(kFirst)}}, queue, payloads);
  actors::Generated more{{item(kFirst)}};
  more.items[0].mask = {0, 1};
  more.items[0].rewards = {0.5F, 0};
  EXPECT_TRUE(told(more).failed.empty());
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
  EXPECT_EQ(told(more).failed.size(), 1U);
}

TEST_F(Payloads, RewardsAtTokensAddToWhatTheJudgeGives) {
  generate(Task::Reward);
  payloads.response(kFirst).token_rewards = {0.5F, 0.25F};
  actors::Judged message{lease, {{1, ""}, {1, ""}}};
  const event::Judged event = told(message).event;
  EXPECT_EQ(event.items.at(0).reward, 1.75);
  EXPECT_EQ(event.items.at(1).reward, 1);
  keep(message, queue, payloads);
  EXPECT_EQ(payloads.response(kFirst).reward, 1.75);
}

TEST_F(Payloads, WhatIsNotHeldIsToldButNotKept) {
  actors::Generated message{{item(kFirst)}};
  message.items.front().lease = LeaseId(77);
  EXPECT_TRUE(told(message).failed.empty());
  keep(message, queue, payloads);
  EXPECT_TRUE(payloads.response(kFirst).tokens.empty());
}

TEST_F(Payloads, OfAGroupThatHasLeftNothingIsKnown) {
  actors::Generated message{{item(ResponseId(1000))}};
  EXPECT_EQ(told(message).event.items.at(0).prompt, Tokens(0));
}

TEST_F(Payloads, ReferenceScoresAreOnePerResponseAndToken) {
  generate(Task::Reference);
  EXPECT_EQ(refusal(actors::ReferenceScored{lease, {{-1, -2}}}),
            "lease 2 holds 2 responses, 1 were scored");
  actors::ReferenceScored good{lease, {{-1, -2}, {-3, -4}}};
  EXPECT_TRUE(told(good).failed.empty());
  keep(good, queue, payloads);
  EXPECT_EQ(payloads.response(kSecond).reference, (actors::LogprobBlob{-3, -4}));
}

TEST_F(Payloads, ImpossibleScoresFailTheirResponseAlone) {
  generate(Task::Reference);
  const std::vector<actors::LogprobBlob> impossible{
      {-1}, {}, {-1, -1, -1}, {-1, kNaN}, {-1, -3e38F}, {-1, 5}};
  for (const actors::LogprobBlob& scores : impossible) {
    actors::ReferenceScored message{lease, {{-1, -2}, scores}};
    const auto told = this->told(message);
    EXPECT_EQ(told.event.failed, std::vector<ResponseId>{kSecond});
    EXPECT_TRUE(told.event.failure.starts_with("rollout-3: response 1: ")) << told.event.failure;
    keep(told.failed, queue, payloads);
    EXPECT_EQ(payloads.response(kSecond).failure, told.event.failure);
    EXPECT_EQ(payloads.response(kFirst).failure, "");
  }
}

TEST_F(Payloads, TopTokensAreKeptIfTheRunAsksForThem) {
  generate(Task::Reference);
  const actors::TopTokens top{{3, 4, 5, 6}, {-1, -2, -0.5F, -3}};
  const auto answer = [&](std::optional<std::vector<actors::TopTokens>> given, std::size_t top_k) {
    actors::ReferenceScored message{lease, {{-1, -2}, {-3, -4}}, std::move(given)};
    AnswerContext context = held();
    context.limits.top_k = top_k;
    auto told = to_event(kSender, message, context).value();
    keep(message, queue, payloads);
    return told;
  };
  EXPECT_TRUE(answer({{top, top}}, 0).failed.empty());
  EXPECT_FALSE(payloads.response(kFirst).top) << "nobody asked";
  EXPECT_TRUE(answer({{top, top}}, 2).failed.empty());
  EXPECT_EQ(payloads.response(kSecond).top, top);
  EXPECT_EQ(answer(std::nullopt, 2).event.failed, (std::vector<ResponseId>{kFirst, kSecond}));
  EXPECT_EQ(answer({{top}}, 2).event.failed, (std::vector<ResponseId>{kSecond}));
  const auto told = answer({{top, top}}, 3);
  EXPECT_NE(told.event.failure.find("4 ids and 4 log-probs of most likely tokens, expected 6"),
            std::string::npos)
      << told.event.failure;
}

TEST_F(Payloads, VerdictsAreOnePerResponseAndTheFirstFailureIsTold) {
  generate(Task::Reward);
  EXPECT_EQ(refusal(actors::Judged{lease, {{1, ""}}}), "lease 2 holds 2 responses, 1 were judged");
  actors::Judged message{lease, {{1, ""}, {0, "it hangs"}}};
  const auto told = this->told(message);
  EXPECT_EQ(told.event.failure, "rollout-3: response 1: it hangs");
  EXPECT_TRUE(told.event.items.at(1).failed);
  keep(told.failed, queue, payloads);
  keep(message, queue, payloads);
  EXPECT_EQ(payloads.response(kFirst).reward, 1);
  EXPECT_EQ(payloads.response(kSecond).reward, std::nullopt) << "nobody judged it";
  EXPECT_EQ(payloads.response(kSecond).failure, "rollout-3: response 1: it hangs");
}

TEST_F(Payloads, RewardsOfTermsAreToldAndKeptWhereTheyApply) {
  generate(Task::Reward);
  actors::Judged message{lease, {{3, ""}, {1, ""}}};
  message.terms = {{"a", {1, 1}}, {"b", {2, double{kNaN}}}};
  message.usage = actors::JudgeUsage{.requests = 2, .cost = 0.5};
  const auto told = this->told(message);
  EXPECT_EQ(told.event.terms.at("a"), (std::vector<double>{1, 1}));
  EXPECT_EQ(told.event.usage->requests, 2U);
  keep(message, queue, payloads);
  EXPECT_EQ(payloads.response(kFirst).terms, (std::map<std::string, double>{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(payloads.response(kSecond).terms, (std::map<std::string, double>{{"a", 1}}));
}

TEST_F(Payloads, ImpossibleTermsAndCostsAreRefused) {
  generate(Task::Reward);
  actors::Judged message{lease, {{1, ""}, {1, ""}}};
  message.terms = {{"a", {1}}};
  EXPECT_EQ(refusal(message), "term a: 1 rewards of 2 responses");
  message.terms = {{"a\"b", {1, 1}}};
  EXPECT_NE(refusal(message).find("name of a term"), std::string::npos);
  message.terms = {{"a", {1, 1e30}}};
  EXPECT_NE(refusal(message).find("term a: reward 1e+30"), std::string::npos);
  message.terms.clear();
  message.usage = actors::JudgeUsage{.cost = double{kNaN}};
  EXPECT_NE(refusal(message).find("usage of judges"), std::string::npos);
}

TEST_F(Payloads, AnImpossibleRewardFailsItsResponseAlone) {
  generate(Task::Reward);
  payloads.response(kFirst).token_rewards = {9e17F, 0};
  for (const double reward : {double{kNaN},
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(),
                              1e308,
                              -1e308,
                              3e38,
                              1e19,
                              -1e19,
                              9e17 /* with that of its tokens */}) {
    actors::Judged message{lease, {{reward, ""}, {1, ""}}};
    const auto told = this->told(message);
    ASSERT_EQ(told.failed.size(), 1U) << reward;
    EXPECT_EQ(told.failed[0].response, kFirst);
    EXPECT_TRUE(told.event.items[0].failed);
    EXPECT_EQ(told.event.items[0].reward, 0);
    EXPECT_FALSE(told.event.items[1].failed);
    keep(message, queue, payloads);
    EXPECT_EQ(payloads.response(kFirst).reward, std::nullopt);
    EXPECT_EQ(payloads.response(kSecond).reward, 1);
  }
}

TEST_F(Payloads, AFailureIsToldInAFewWordsAndKeptInAFewMore) {
  generate(Task::Reward);
  actors::Judged message{lease, {{0, std::string(100'000, 'x')}, {0, "y"}}};
  const auto told = this->told(message);
  EXPECT_LT(told.event.failure.size(), 450U);
  EXPECT_LT(told.failed.at(0).why.size(), actors::kLongestText + 32);
}

TEST(Metrics, OfAnUpdateAreFinite) {
  actors::UpdateMetrics metrics;
  EXPECT_TRUE(check(metrics));
  metrics.kl = std::numeric_limits<double>::infinity();
  EXPECT_EQ(check(metrics).error().context, "metrics of an update: kl is inf");
  EXPECT_EQ(check(metrics).error().code, ErrorCode::NotFinite);
}

}  // namespace
}  // namespace temper::orchestrator
