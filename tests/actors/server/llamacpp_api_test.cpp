#include "actors/server/server_api.hpp"
#include "core/json_document.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::actors {
namespace {

const std::vector<std::int32_t> kLlamaTokens{3, 4};

std::unique_ptr<ServerApi> api_at(double temperature) {
  ServerSampling s;
  s.temperature = temperature;
  s.vocabulary = 14;
  return make_llamacpp_api(s);
}

TEST(LlamacppApi, SendsTokenIdsAndOverridesServerDefaults) {
  const auto call = api_at(1)->generate({"id-1", kLlamaTokens, 5, "v1"});
  EXPECT_EQ(call.target, "/completion");
  const auto body = parse_json(call.body);
  EXPECT_EQ(body["prompt"], kLlamaTokens);
  EXPECT_EQ(body["n_predict"], 5);
  const nlohmann::json settings{{"temperature", 1.0},
                                {"top_k", 0},
                                {"top_p", 1.0},
                                {"min_p", 0.0},
                                {"repeat_penalty", 1.0},
                                {"n_probs", 1},
                                {"return_tokens", true}};
  for (const auto& [key, neutral] : settings.items())
    EXPECT_EQ(body[key], neutral) << key;
}

// A response of the server of 2026-10.
TEST(LlamacppApi, ReadsTokensAndLogProbs) {
  const auto reply = api_at(1)->read_generated(
      R"({"tokens":[7,1],"completion_probabilities":[{"id":7,"token":"<7>","bytes":[60,55,62],
          "logprob":-6.155,"top_logprobs":[{"id":5,"token":"<5>","bytes":[60,53,62],
          "logprob":-0.8458858132362366}]},{"id":1,"token":"","bytes":[],"logprob":-0.5,
          "top_logprobs":[]}],"stop_type":"eos"})");
  ASSERT_TRUE(reply) << reply.error().context;
  EXPECT_EQ(reply->tokens, (std::vector<std::int32_t>{7, 1}));
  EXPECT_EQ(reply->logprobs, (std::vector<float>{-6.155F, -0.5F}));
  EXPECT_EQ(reply->ended, GenerateReply::StopReason::End);
}

TEST(LlamacppApi, RequestsPostSamplingLogProbsIfTheDistributionIsChanged) {
  const auto api = api_at(0.5);
  EXPECT_EQ(parse_json(api->generate({"1", kLlamaTokens, 5, "v1"}).body)["post_sampling_probs"],
            true);
  const auto reply = api->read_generated(
      R"({"tokens":[7],"completion_probabilities":[{"id":7,"prob":0.25,"top_probs":[]}],
          "stop_type":"limit"})");
  ASSERT_TRUE(reply) << reply.error().context;
  EXPECT_FLOAT_EQ(reply->logprobs.at(0), std::log(0.25F));
}

TEST(LlamacppApi, RejectsLogProbsOfOtherTokens) {
  EXPECT_FALSE(api_at(1)->read_generated(
      R"({"tokens":[7,8],"completion_probabilities":[{"id":8,"logprob":-1}],"stop_type":"limit"})"));
  EXPECT_FALSE(api_at(1)->read_generated(
      R"({"tokens":[7],"completion_probabilities":[{"id":8,"logprob":-1}],"stop_type":"limit"})"));
  EXPECT_FALSE(api_at(1)->read_generated(
      R"({"tokens":[7],"completion_probabilities":[{"id":7,"prob":0}],"stop_type":"limit"})"));
}

TEST(LlamacppApi, ScoresATokenByForcingIt) {
  const auto api = api_at(1);
  EXPECT_FALSE(api->scores_at_once());
  const auto body = parse_json(api->score(kLlamaTokens).body);
  EXPECT_EQ(body["prompt"], std::vector<int>{3});
  EXPECT_EQ(body["logit_bias"][0][0], 4);
  const auto answer = [](int token) {
    const std::string id = std::to_string(token);
    return R"({"tokens":[)" + id + R"(],"completion_probabilities":[{"id":)" + id +
           R"(,"logprob":-1.5}],"stop_type":"limit"})";
  };
  EXPECT_EQ(api->read_scores(answer(4), kLlamaTokens).value(), std::vector<float>{-1.5F});
  EXPECT_FALSE(api->read_scores(answer(5), kLlamaTokens));
}

}  // namespace
}  // namespace temper::actors
