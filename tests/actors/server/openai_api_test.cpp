#include "actors/server/server_api.hpp"
#include "core/json_document.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

const std::vector<std::int32_t> kOpenaiTokens{3, 4};

ServerSampling openai_sampling() {
  ServerSampling s;
  s.vocabulary = 14;
  s.model = "policy";
  return s;
}

std::unique_ptr<ServerApi> api_of(const std::string& reload = {}, const std::string& start = {}) {
  EngineConfig config;
  config.kind = EngineKind::Openai;
  config.reload = reload;
  config.start = start;
  return make_openai_api(config, openai_sampling());
}

constexpr const char* kGood =
    R"({"choices":[{"finish_reason":"length","token_ids":[5],
        "logprobs":{"tokens":["x"],"token_logprobs":[-0.5]}}],"usage":{"prompt_tokens":3}})";

/// Answers the first request with `first`, the others with `rest`.
Status probe(ServerApi& api, std::string_view first, std::string_view rest = kGood) {
  const Status met = api.accept_routes({});
  EXPECT_TRUE(met);
  for (std::string_view answer = first; api.next_probe(); answer = rest) {
    if (const Status learnt = api.learn(200, answer); !learnt)
      return learnt;
  }
  return {};
}

TEST(OpenaiApi, SendsTokenIdsAndOverridesServerDefaults) {
  const auto call = api_of()->generate({"id-1", kOpenaiTokens, 5, "v1"});
  EXPECT_EQ(call.target, "/v1/completions");
  const auto body = parse_json(call.body);
  EXPECT_EQ(body["prompt"], kOpenaiTokens);
  EXPECT_EQ(body["max_tokens"], 5);
  EXPECT_EQ(body["cache_salt"], "v1");
  const nlohmann::json settings{{"temperature", 1.0},
                                {"top_p", 1.0},
                                {"top_k", -1},
                                {"min_p", 0.0},
                                {"presence_penalty", 0},
                                {"frequency_penalty", 0},
                                {"repetition_penalty", 1.0}};
  for (const auto& [key, neutral] : settings.items())
    EXPECT_EQ(body[key], neutral) << key;
}

TEST(OpenaiApi, OmitsExtensionsThatTheServerRefuses) {
  const auto api = api_of();
  ASSERT_TRUE(api->accept_routes({}));
  ASSERT_TRUE(parse_json(api->next_probe()->body).contains("top_k"));
  ASSERT_TRUE(api->learn(400, R"({"error":"unknown: top_k"})"));
  EXPECT_FALSE(parse_json(api->next_probe()->body).contains("top_k"));
  ASSERT_TRUE(api->learn(200, kGood));
  EXPECT_FALSE(parse_json(api->generate({"1", kOpenaiTokens, 5, "v1"}).body).contains("top_k"));
}

// Shortened responses of vLLM 0.32, a server of the older API, and llama.cpp of 2026-10.
TEST(OpenaiApi, ReadsThreeFormsOfTokenIdsAndLogProbs) {
  const char* const kForms[] = {
      R"({"choices":[{"index":0,"text":"ab","finish_reason":"stop","token_ids":[5,12],
          "logprobs":{"text_offset":[0,1],"token_logprobs":[-2.5,-0.25],"tokens":["a","b"],
          "top_logprobs":[{"a":-2.5},{"b":-0.25}]},"prompt_logprobs":null}]})",
      R"({"choices":[{"finish_reason":"stop","logprobs":{"token_logprobs":[-2.5,-0.25],
          "tokens":["token_id:5","token_id:12"]}}]})",
      R"({"choices":[{"text":"<5><12>","index":0,"logprobs":{"content":[{"id":5,"token":"<5>",
          "bytes":[60,53,62],"logprob":-2.5,"top_logprobs":[{"id":7,"logprob":-0.1}]},
          {"id":12,"token":"<12>","logprob":-0.25,"top_logprobs":[]}]},"finish_reason":"stop"}]})"};
  for (const char* const form : kForms) {
    const auto reply = api_of()->read_generated(form);
    ASSERT_TRUE(reply) << reply.error().context;
    EXPECT_EQ(reply->tokens, (std::vector<std::int32_t>{5, 12}));
    EXPECT_EQ(reply->logprobs, (std::vector<float>{-2.5F, -0.25F}));
    EXPECT_EQ(reply->ended, GenerateReply::StopReason::End);
    EXPECT_FALSE(reply->runs);
  }
}

TEST(OpenaiApi, RejectsInvalidResponses) {
  const char* const kBad[] = {
      "",
      R"({"choices":[]})",
      R"({"choices":[{"finish_reason":"stop","token_ids":[14],"logprobs":null}]})",
      R"({"choices":[{"finish_reason":"stop","logprobs":{"tokens":["a"],"token_logprobs":[-1]}}]})",
      R"({"choices":[{"finish_reason":"stop","logprobs":{"content":[{"id":-1,"logprob":-1}]}}]})",
      R"({"choices":[{"finish_reason":null,"token_ids":[2]}]})",
      R"({"choices":[{"token_ids":[2]}]})"};
  for (const char* const bad : kBad)
    EXPECT_FALSE(api_of()->read_generated(bad)) << bad;
}

TEST(OpenaiApi, UsesTheFirstSupportedWayToScore) {
  const auto by_prompt = api_of();
  ASSERT_TRUE(probe(*by_prompt,
                    kGood,
                    R"({"choices":[{"finish_reason":"length","prompt_logprobs":
                        [null,{"6":{"logprob":-1}},{"13":{"logprob":-2}}]}]})"));
  EXPECT_TRUE(by_prompt->scores_at_once());
  EXPECT_TRUE(parse_json(by_prompt->score(kOpenaiTokens).body).contains("prompt_logprobs"));

  const auto by_echo = api_of();
  ASSERT_TRUE(probe(*by_echo,
                    kGood,
                    R"({"choices":[{"finish_reason":"length","logprobs":
                        {"token_logprobs":[null,-1.5,-2.5,-3]}}]})"));
  EXPECT_TRUE(by_echo->scores_at_once());
  const auto scores = by_echo->read_scores(
      R"({"choices":[{"logprobs":{"token_logprobs":[null,-1.5,-9]}}]})", kOpenaiTokens);
  ASSERT_TRUE(scores) << scores.error().context;
  EXPECT_EQ(*scores, std::vector<float>{-1.5F});
}

TEST(OpenaiApi, ScoresTokenByTokenIfNecessary) {
  const auto api = api_of();
  ASSERT_TRUE(api->accept_routes({}));
  ASSERT_TRUE(api->learn(200, kGood));
  ASSERT_TRUE(api->learn(200, kGood));  // prompt_logprobs: none in the answer
  ASSERT_TRUE(api->learn(200, kGood));  // echo: none
  const auto forced = [](int token) {
    return R"({"choices":[{"finish_reason":"length","token_ids":[)" + std::to_string(token) +
           R"(],"logprobs":{"token_logprobs":[-0.7]}}]})";
  };
  EXPECT_EQ(parse_json(api->next_probe()->body)["logit_bias"]["13"], 100);
  ASSERT_TRUE(api->learn(200, forced(13)));
  EXPECT_EQ(parse_json(api->next_probe()->body)["logit_bias"]["6"], 100);
  ASSERT_TRUE(api->learn(200, forced(6)));
  EXPECT_FALSE(api->next_probe());
  EXPECT_FALSE(api->scores_at_once());
  EXPECT_EQ(parse_json(api->score(kOpenaiTokens).body)["prompt"], std::vector<int>{3});
  EXPECT_EQ(api->read_scores(forced(4), kOpenaiTokens).value(), std::vector<float>{-0.7F});
  EXPECT_FALSE(api->read_scores(forced(5), kOpenaiTokens));
}

TEST(OpenaiApi, CanScoreWithoutTokenIds) {
  const auto api = api_of();
  ASSERT_TRUE(probe(*api,
                    R"({"choices":[{"finish_reason":"length",
                        "logprobs":{"tokens":["a"],"token_logprobs":[-1]}}]})",
                    R"({"choices":[{"finish_reason":"length","logprobs":
                        {"token_logprobs":[null,-1.5,-2.5,-3]}}]})"));
  ASSERT_FALSE(api->can_generate());
  EXPECT_NE(api->can_generate().error().context.find("no token ids"), std::string::npos);
}

TEST(OpenaiApi, LoadsWeightsByRequestByRestartOrNever) {
  using Loading = ServerApi::Loading;
  EXPECT_EQ(api_of("POST /reload?p={model}")->loading(), Loading::Routes);
  EXPECT_EQ(api_of("", "serve {model} {port}")->loading(), Loading::Restart);
  EXPECT_EQ(api_of("", "serve {port}")->loading(), Loading::Never);
  const auto calls = api_of("POST /reload?p={model}")->load("/w/v3", "v3");
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].target, "/reload?p=/w/v3");
}

TEST(OpenaiApi, ReportsALoadThatTheServerDenies) {
  EXPECT_TRUE(api_of()->check_loaded("done"));
  EXPECT_TRUE(api_of()->check_loaded(R"({"success":true})"));
  EXPECT_FALSE(api_of()->check_loaded(R"({"success":false})"));
  EXPECT_FALSE(api_of()->check_loaded(R"({"error":{"message":"no such folder"}})"));
}

}  // namespace
}  // namespace temper::actors
