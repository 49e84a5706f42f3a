#include "rollout/gateway/gateway_api.hpp"

#include "core/json_document.hpp"

#include <gtest/gtest.h>

namespace temper::test {
namespace {

using rollout::GatewayRoute;
using Ids = std::vector<std::int32_t>;

class GatewayApi : public testing::Test {
 protected:
  /// Characters: '0' is token 2, '=' is token 13.
  static actors::Tokenizer characters() {
    actors::TaskConfig task;
    task.tokenizer = actors::TokenizerKind::Characters;
    return actors::Tokenizer::for_task(task);
  }
  Result<rollout::TurnRequest> parse(GatewayRoute route, std::string_view body) const {
    return rollout::parse_turn(route, body, {}, tokenizer_);
  }
  void expect_refused(GatewayRoute route, std::string_view body, std::string_view why) const {
    const auto turn = parse(route, body);
    ASSERT_FALSE(turn) << body;
    EXPECT_NE(turn.error().context.find(why), std::string::npos) << turn.error().context;
  }
  const actors::Tokenizer tokenizer_ = characters();
};

TEST_F(GatewayApi, FindsTheSessionAndTheRouteOfATarget) {
  const auto target = rollout::parse_target("/sessions/ab12/v1/chat/completions?x=1");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->session, "ab12");
  EXPECT_EQ(target->route, GatewayRoute::Chat);
  for (const char* const wrong : {"/", "/v1/completions", "/sessions/a", "/sessions/a/v1/other"})
    EXPECT_FALSE(rollout::parse_target(wrong)) << wrong;
}

TEST_F(GatewayApi, TakesACompletionAsTextOrAsTokens) {
  const auto text = parse(GatewayRoute::Completions,
                          R"({"prompt":"1+2","max_tokens":5,"stop":["="],"temperature":1.0})");
  ASSERT_TRUE(text) << text.error().context;
  EXPECT_EQ(text->text, "1+2");
  EXPECT_FALSE(text->tokens);
  EXPECT_EQ(text->most, Tokens(5));
  EXPECT_EQ(text->stops, (Ids{13}));
  const auto ids = parse(GatewayRoute::Completions, R"({"prompt":[3,12,4],"stop_token_ids":[13]})");
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->tokens, (Ids{3, 12, 4}));
  EXPECT_FALSE(ids->most);
  EXPECT_EQ(ids->stops, (Ids{13}));
}

TEST_F(GatewayApi, TakesTokensInAsVllmDoes) {
  const auto turn =
      parse(GatewayRoute::Generate,
            R"({"token_ids":[3,4],"sampling_params":{"max_tokens":7,"top_k":-1,"n":1}})");
  ASSERT_TRUE(turn) << turn.error().context;
  EXPECT_EQ(turn->tokens, (Ids{3, 4}));
  EXPECT_EQ(turn->most, Tokens(7));
}

TEST_F(GatewayApi, PutsTheMessagesOfAChatOneBehindTheOther) {
  const auto turn = parse(GatewayRoute::Chat,
                          R"({"messages":[{"role":"user","content":"1+"},)"
                          R"({"role":"assistant","content":"2"}],"max_completion_tokens":3})");
  ASSERT_TRUE(turn) << turn.error().context;
  EXPECT_EQ(turn->text, "1+2");
  EXPECT_EQ(turn->most, Tokens(3));
}

TEST_F(GatewayApi, RefusesWhatWouldSampleFromAnotherDistribution) {
  for (const char* const field : {R"("temperature":0.5)",
                                  R"("top_p":0.9)",
                                  R"("n":2)",
                                  R"("top_k":40)",
                                  R"("presence_penalty":1)",
                                  R"("stream":true)",
                                  R"("logit_bias":{"3":-100})"}) {
    const std::string_view name(field + 1, std::string_view(field).find(':') - 2);
    expect_refused(GatewayRoute::Completions, std::string(R"({"prompt":"1",)") + field + "}", name);
    expect_refused(GatewayRoute::Generate,
                   std::string(R"({"token_ids":[3],"sampling_params":{)") + field + "}}",
                   name);
  }
}

TEST_F(GatewayApi, NamesTheFieldThatIsWrong) {
  expect_refused(GatewayRoute::Completions, "no json", "JSON");
  expect_refused(GatewayRoute::Completions, "{}", "prompt");
  expect_refused(GatewayRoute::Completions, R"({"prompt":[99]})", "99 is not a token");
  expect_refused(GatewayRoute::Completions, R"({"prompt":"1","max_tokens":0})", "max_tokens");
  expect_refused(GatewayRoute::Completions, R"({"prompt":"1","stop":"12"})", "2 tokens");
  expect_refused(GatewayRoute::Generate, R"({"token_ids":"1"})", "token_ids");
  expect_refused(GatewayRoute::Chat, R"({"messages":[{"role":"user"}]})", "content");
  expect_refused(GatewayRoute::Chat, R"({"messages":[],"tools":[{}]})", "tools");
}

TEST_F(GatewayApi, AnswersWithTextTokensAndLogProbs) {
  rollout::Generation turn;
  turn.tokens = {4, 13};
  turn.logprobs = {-0.5F, -0.25F};
  const std::string text = rollout::text_of_turn(turn, {13}, tokenizer_);
  EXPECT_EQ(text, "2");
  const rollout::TurnAnswer answer{"s-1", 3, text, &turn};
  const auto completion = parse_json(rollout::write_turn(GatewayRoute::Completions, answer));
  EXPECT_EQ(completion["choices"][0]["text"], "2");
  EXPECT_EQ(completion["choices"][0]["token_ids"], (Ids{4, 13}));
  EXPECT_EQ(completion["choices"][0]["logprobs"]["token_logprobs"][1], -0.25);
  EXPECT_EQ(completion["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(completion["usage"]["total_tokens"], 5);
  const auto chat = parse_json(rollout::write_turn(GatewayRoute::Chat, answer));
  EXPECT_EQ(chat["choices"][0]["message"]["content"], "2");
  const auto generated = parse_json(rollout::write_turn(GatewayRoute::Generate, answer));
  EXPECT_EQ(generated["choices"][0]["logprobs"]["content"][0]["logprob"], -0.5);
}

}  // namespace
}  // namespace temper::test
