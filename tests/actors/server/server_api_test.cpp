#include "actors/server/server_api.hpp"

#include "core/json_document.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

ServerSampling sampling() {
  ServerSampling s;
  s.temperature = 0.7;
  s.top_p = 0.9;
  s.vocabulary = 14;
  s.model = "policy";
  return s;
}

ServerSampling with_adapters() {
  ServerSampling s = sampling();
  s.adapters = LoraConfig{.rank = 4, .alpha = 8, .targets = {"q_proj", "v_proj"}};
  return s;
}

const std::vector<std::int32_t> kTokens{3, 4};

TEST(VllmApi, SendsTokenIdsAndOverridesServerDefaults) {
  const auto call = make_vllm_api(sampling())->generate({"id-1", kTokens, 5, "v1"});
  EXPECT_EQ(call.target, "/inference/v1/generate");
  const auto body = parse_json(call.body);
  EXPECT_EQ(body["token_ids"], kTokens);
  EXPECT_EQ(body["cache_salt"], "v1");
  EXPECT_EQ(body["sampling_params"]["max_tokens"], 5);
  EXPECT_EQ(body["sampling_params"]["temperature"], 0.7);
  EXPECT_EQ(body["sampling_params"]["top_p"], 0.9);
  EXPECT_EQ(body["sampling_params"]["top_k"], -1);
  EXPECT_EQ(body["sampling_params"]["stop_token_ids"], (std::vector<int>{1}));
}

TEST(VllmApi, LoadsAdaptersByTheirNameAndNamesThemInRequests) {
  const auto api = make_vllm_api(with_adapters());
  const auto calls = api->load("/weights/v3-ab", "v3-ab");
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].target, "/v1/load_lora_adapter");
  EXPECT_EQ(parse_json(calls[0].body)["lora_name"], "v3-ab");
  EXPECT_EQ(parse_json(calls[0].body)["lora_path"], "/weights/v3-ab");
  EXPECT_EQ(calls[2].target, "/update_weight_version");
  EXPECT_EQ(parse_json(api->generate({"id-1", kTokens, 5, "v3-ab"}).body)["model"], "policy");
  api->use_adapter("v3-ab");
  api->set_model("policy");  // Of a server that was asked again.
  EXPECT_EQ(parse_json(api->generate({"id-1", kTokens, 5, "v3-ab"}).body)["model"], "v3-ab");
  EXPECT_EQ(parse_json(api->score(kTokens).body)["model"], "v3-ab");
  const auto unload = api->unload("v3-ab");
  ASSERT_TRUE(unload);
  EXPECT_EQ(unload->target, "/v1/unload_lora_adapter");
  EXPECT_EQ(parse_json(unload->body)["lora_name"], "v3-ab");
}

TEST(VllmApi, NamesTheFlagThatAdaptersNeed) {
  const std::set<std::string> routes{"/inference/v1/generate",
                                     "/pause",
                                     "/resume",
                                     "/collective_rpc",
                                     "/update_weight_version",
                                     "/weight_info"};
  EXPECT_TRUE(make_vllm_api(sampling())->accept_routes(routes));
  const Status missing = make_vllm_api(with_adapters())->accept_routes(routes);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().context.find("--enable-lora --max-lora-rank 4"), std::string::npos);
}

// A shortened response of release 0.32.
TEST(VllmApi, ReadsTokensLogProbsAndVersionRanges) {
  const auto reply =
      make_vllm_api(sampling())
          ->read_generated(
              R"({"request_id":"generate-tokens-a1","prompt_logprobs":null,"choices":[{"index":0,
          "finish_reason":"abort","token_ids":[5,12],"weight_versions":[{"version":"v1-ab",
          "start":0,"end":2}],"logprobs":{"content":[{"token_id":5,"logprob":-2.5,"rank":5,
          "top_logprobs":[]},{"token_id":12,"logprob":-0.25,"rank":1,"top_logprobs":[]}]}}]})");
  ASSERT_TRUE(reply) << reply.error().context;
  EXPECT_EQ(reply->tokens, (std::vector<std::int32_t>{5, 12}));
  EXPECT_EQ(reply->logprobs, (std::vector<float>{-2.5F, -0.25F}));
  EXPECT_EQ(reply->ended, GenerateReply::StopReason::Aborted);
  ASSERT_TRUE(reply->runs && reply->runs->size() == 1);
  EXPECT_EQ(reply->runs->front().label, "v1-ab");
}

TEST(VllmApi, RejectsInvalidResponses) {
  const auto api = make_vllm_api(sampling());
  const char* const kBad[] = {
      "",
      "[]",
      R"({"choices":[]})",
      R"({"choices":[{"finish_reason":"stop","token_ids":[14]}]})",
      R"({"choices":[{"finish_reason":"stop","token_ids":["a"]}]})",
      R"({"choices":[{"finish_reason":"tool","token_ids":[]}]})",
      R"({"choices":[{"finish_reason":"stop","token_ids":[2],"logprobs":{"content":[{"logprob":1}]}}]})",
      R"({"choices":[{"finish_reason":"stop","token_ids":[2],"weight_versions":[{"version":"a","start":0,"end":3}]}]})",
      R"({"choices":[{"finish_reason":"stop","token_ids":[2],"weight_versions":[{"version":"a","start":1,"end":1}]}]})"};
  for (const char* const body : kBad)
    EXPECT_FALSE(api->read_generated(body)) << body;
}

/// An impossible log-prob in the responses of three kinds of servers.
TEST(ServerApis, NameAnImpossibleLogProb) {
  struct Case {
    std::string logprob;
    std::string_view says;
  };
  const Case kCases[] = {{"null", "token 1: expected a number as log-prob, found null"},
                         {"NaN", "token 1: expected a finite number as log-prob"},
                         {"-Infinity", "token 1: expected a finite number as log-prob"},
                         {"1e999", "token 1: expected a finite number as log-prob"},
                         {"\"-1\"", "token 1: expected a finite number as log-prob"},
                         {"true", "token 1: expected a finite number as log-prob"},
                         {"[-1]", "token 1: expected a finite number as log-prob"},
                         {"5", "token 1: log-prob 5, expected"},
                         {"0.01", "token 1: log-prob 0.01, expected"},
                         {"-1000", "token 1: log-prob -1000, expected"},
                         {"-3e38", "token 1: log-prob -3e+38, expected"},
                         {"-1e308", "token 1: log-prob -1e+308, expected"}};
  EngineConfig openai, llamacpp;
  openai.kind = EngineKind::Openai;
  llamacpp.kind = EngineKind::Llamacpp;
  for (const Case& c : kCases) {
    const auto check = [&](const std::unique_ptr<ServerApi>& api, const std::string& body) {
      const auto reply = api->read_generated(body);
      ASSERT_FALSE(reply) << body;
      EXPECT_EQ(reply.error().code, ErrorCode::Corrupt);
      EXPECT_NE(reply.error().context.find(c.says), std::string::npos)
          << c.logprob << ": " << reply.error().context;
    };
    check(make_vllm_api(sampling()),
          R"({"choices":[{"finish_reason":"stop","token_ids":[2,3],"logprobs":{"content":)"
          R"([{"logprob":-1},{"logprob":)" +
              c.logprob + "}]}}]}");
    check(make_sglang_api(sampling()),
          R"({"meta_info":{"finish_reason":{"type":"stop"},"output_token_logprobs":)"
          R"([[-2.5,5,null],[)" +
              c.logprob + R"(,5,null]],"weight_version":"v2"}})");
    check(make_server_api(openai, sampling()),
          R"({"choices":[{"finish_reason":"stop","token_ids":[2,3],"logprobs":{"content":)"
          R"([{"logprob":-1},{"logprob":)" +
              c.logprob + "}]}}]}");
    check(make_server_api(llamacpp, sampling()),
          R"({"tokens":[2,3],"stop_type":"limit","completion_probabilities":)"
          R"([{"id":2,"logprob":-1},{"id":3,"logprob":)" +
              c.logprob + "}]}");
  }
}

TEST(ServerApis, ReportATruncatedResponse) {
  const std::string whole =
      R"({"choices":[{"finish_reason":"stop","token_ids":[2],"logprobs":{"content":[{"logprob":-1}]}}]})";
  ASSERT_TRUE(make_vllm_api(sampling())->read_generated(whole));
  for (const std::size_t size : {1U, 20U, 50U, 70U, 90U}) {
    const auto reply = make_vllm_api(sampling())->read_generated(whole.substr(0, size));
    ASSERT_FALSE(reply);
    EXPECT_NE(reply.error().context.find("expected a complete JSON object"), std::string::npos)
        << reply.error().context;
  }
}

TEST(ServerApis, BoundProbabilitiesOfSampledTokens) {
  EngineConfig config;
  config.kind = EngineKind::Llamacpp;
  const auto api = make_server_api(config, sampling());
  const auto reads = [&](const std::string& probability) {
    return api
        ->read_generated(R"({"tokens":[2],"stop_type":"limit","completion_probabilities":)"
                         R"([{"id":2,"prob":)" +
                         probability + "}]}")
        .has_value();
  };
  for (const char* const possible : {"1", "0.5", "1e-30", "1e-43", "1.0005"})
    EXPECT_TRUE(reads(possible)) << possible;
  for (const char* const impossible : {"0", "-0.5", "1.1", "1e-50", "1e999", "null"})
    EXPECT_FALSE(reads(impossible)) << impossible;
}

TEST(VllmApi, ReadsTheScoreOfEachToken) {
  const std::vector<std::int32_t> tokens{3, 4, 5};
  const auto scores =
      make_vllm_api(sampling())
          ->read_scores(
              R"({"prompt_logprobs":[null,{"4":{"logprob":-4.5,"rank":13},"7":{"logprob":-1.5}},
          {"5":{"logprob":-2.5}}]})",
              tokens);
  ASSERT_TRUE(scores) << scores.error().context;
  EXPECT_EQ(*scores, (std::vector<float>{-4.5F, -2.5F}));
  EXPECT_FALSE(
      make_vllm_api(sampling())
          ->read_scores(
              R"({"prompt_logprobs":[null,{"4":{"logprob":-4.5}},{"6":{"logprob":-2.5}}]})",
              tokens));
}

TEST(VllmApi, NamesTheFlagForAMissingRoute) {
  const std::set<std::string> all{"/inference/v1/generate",
                                  "/pause",
                                  "/resume",
                                  "/collective_rpc",
                                  "/update_weight_version",
                                  "/weight_info"};
  EXPECT_TRUE(make_vllm_api(sampling())->accept_routes(all));
  auto without = all;
  without.erase("/inference/v1/generate");
  EXPECT_NE(
      make_vllm_api(sampling())->accept_routes(without).error().context.find("--enable-scale-out"),
      std::string::npos);
  without = all;
  without.erase("/pause");
  EXPECT_NE(make_vllm_api(sampling())
                ->accept_routes(without)
                .error()
                .context.find("VLLM_SERVER_DEV_MODE=1"),
            std::string::npos);
}

TEST(SglangApi, LoadsAdaptersByTheirNameAndNamesThemInRequests) {
  const auto api = make_sglang_api(with_adapters());
  const auto calls = api->load("/weights/v3-ab", "v3-ab");
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls[0].target, "/unload_lora_adapter");
  EXPECT_TRUE(calls[0].may_be_refused);
  EXPECT_EQ(calls[1].target, "/load_lora_adapter");
  EXPECT_FALSE(calls[1].may_be_refused);
  EXPECT_EQ(parse_json(calls[1].body)["lora_name"], "v3-ab");
  EXPECT_EQ(parse_json(calls[1].body)["lora_path"], "/weights/v3-ab");
  EXPECT_EQ(calls[2].target, "/flush_cache");
  EXPECT_EQ(calls[3].target, "/update_weight_version");
  EXPECT_EQ(parse_json(calls[3].body)["new_version"], "v3-ab");
  EXPECT_FALSE(parse_json(api->generate({"id-1", kTokens, 5, "v3-ab"}).body).contains("lora_path"));
  api->use_adapter("v3-ab");
  EXPECT_EQ(parse_json(api->generate({"id-1", kTokens, 5, "v3-ab"}).body)["lora_path"], "v3-ab");
  EXPECT_EQ(parse_json(api->score(kTokens).body)["lora_path"], "v3-ab");
  EXPECT_EQ(parse_json(api->unload("v3-ab")->body)["lora_name"], "v3-ab");
  EXPECT_EQ(make_sglang_api(sampling())->load("/weights/v3-ab", "v3-ab").back().target,
            "/update_weights_from_disk");
}

TEST(SglangApi, NamesTheReleaseAndTheFlagsThatAdaptersNeed) {
  const std::set<std::string> routes{
      "/generate", "/pause_generation", "/continue_generation", "/update_weights_from_disk"};
  EXPECT_TRUE(make_sglang_api(sampling())->accept_routes(routes));
  EXPECT_FALSE(make_sglang_api(sampling())->next_probe());
  const Status missing = make_sglang_api(with_adapters())->accept_routes(routes);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().context.find("no /load_lora_adapter, which model.lora requires; use "
                                         "SGLang 0.5"),
            std::string::npos);
  const auto said_of = [](const std::string& settings) {
    const auto api = make_sglang_api(with_adapters());
    EXPECT_EQ(api->next_probe()->target, "/server_info");
    const Status status = api->learn(200, settings);
    EXPECT_FALSE(api->next_probe());
    return status ? "" : status.error().context;
  };
  const std::string flags =
      "start it with --enable-lora --max-lora-rank 4 --lora-target-modules q_proj v_proj";
  EXPECT_NE(said_of(R"({"enable_lora":null})").find("no --enable-lora, which does not fit"),
            std::string::npos);
  EXPECT_NE(said_of(R"({"enable_lora":false})").find(flags), std::string::npos);
  EXPECT_NE(said_of(R"({"enable_lora":true,"max_lora_rank":2})").find("--max-lora-rank 2"),
            std::string::npos);
  EXPECT_NE(said_of(R"({"enable_lora":true,"max_lora_rank":4,"lora_target_modules":["q_proj"]})")
                .find("no v_proj in its --lora-target-modules"),
            std::string::npos);
  EXPECT_EQ(said_of(R"({"enable_lora":true,"max_lora_rank":4,"lora_target_modules":["all"]})"), "");
  EXPECT_EQ(said_of(R"({"enable_lora":true,"max_lora_rank":null})"), "");
}

TEST(SglangApi, FindsTheSettingsOfAnOlderServerAndAcceptsOneThatShowsNone) {
  const auto api = make_sglang_api(with_adapters());
  EXPECT_TRUE(api->learn(404, R"({"detail":"Not Found"})"));
  EXPECT_EQ(api->next_probe()->target, "/get_server_info");
  EXPECT_TRUE(api->learn(404, ""));
  EXPECT_FALSE(api->next_probe());
}

TEST(SglangApi, ReadsTokensLogProbsAndVersionRanges) {
  const auto reply = make_sglang_api(sampling())
                         ->read_generated(
                             R"({"text":"","meta_info":{"finish_reason":{"type":"length"},
          "output_token_logprobs":[[-2.5,5,null],[-0.25,12,null]],"weight_version":"v2",
          "weight_versions":[{"version":"v1","start":0,"end":1},
                             {"version":"v2","start":1,"end":2}]}})");
  ASSERT_TRUE(reply) << reply.error().context;
  EXPECT_EQ(reply->tokens, (std::vector<std::int32_t>{5, 12}));
  ASSERT_TRUE(reply->runs && reply->runs->size() == 2);
  EXPECT_EQ(reply->runs->at(1).label, "v2");
  EXPECT_EQ(reply->runs->at(1).tokens, 1U);
}

TEST(SglangApi, AppliesASingleVersionToAllTokens) {
  const auto reply = make_sglang_api(sampling())
                         ->read_generated(
                             R"({"meta_info":{"finish_reason":{"type":"stop"},"weight_version":"v2",
          "output_token_logprobs":[[-2.5,5,null]]}})");
  ASSERT_TRUE(reply && reply->runs);
  EXPECT_EQ(reply->runs->front().label, "v2");
}

TEST(SglangApi, ReportsAnAdapterThatTheServerDenies) {
  const Status denied = make_sglang_api(with_adapters())
                            ->check_loaded(R"({"success":false,"error_message":"no memory"})");
  ASSERT_FALSE(denied);
  EXPECT_NE(denied.error().context.find("no memory"), std::string::npos);
}

TEST(SglangApi, ReportsALoadThatTheServerDenies) {
  const auto api = make_sglang_api(sampling());
  EXPECT_TRUE(api->check_loaded(R"({"success":true,"message":""})"));
  const Status denied = api->check_loaded(R"({"success":false,"message":"out of memory"})");
  ASSERT_FALSE(denied);
  EXPECT_NE(denied.error().context.find("out of memory"), std::string::npos);
}

TEST(Metric, SumsOverLabelsAndMatchesWholeNames) {
  constexpr std::string_view kText =
      "# HELP vllm:num_requests_waiting x\n"
      "vllm:num_requests_waiting{engine=\"0\"} 2.0\n"
      "vllm:num_requests_waiting{engine=\"1\"} 3\n"
      "vllm:num_requests_waiting_by_reason{engine=\"0\"} 100\n"
      "plain 1e3\n";
  EXPECT_EQ(metric(kText, "vllm:num_requests_waiting"), 5.0);
  EXPECT_EQ(metric(kText, "plain"), 1000.0);
  EXPECT_FALSE(metric(kText, "vllm:num_requests"));
}

}  // namespace
}  // namespace temper::actors
