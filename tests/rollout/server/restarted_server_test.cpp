// Engines for servers that load new weights only at their start, which Temper starts:
// OpenAI-compatible ones, in each way of returning token ids and log-probs, and llama.cpp's.
#include "tests/rollout/server/server_world.hpp"

namespace temper::test {
namespace {

struct Kind {
  EngineKind kind = EngineKind::Openai;
  std::string style = "prompt_logprobs";
};

actors::EngineConfig started(const Kind& kind, const std::string& more = {}) {
  actors::EngineConfig config = config_of(kind.kind, "");
  config.data.clear();
  config.start = fake_server_command(kind.kind, "--style " + kind.style + " " + more);
  return config;
}

/// The error of the engine for a server that has this fault from the beginning.
std::string refusal(const Kind& kind, const std::string& fault) {
  const RealClock clock;
  const Log log = Log::discard();
  const TemporaryFolder folder;
  actors::ServerOptions options;
  options.log = folder / "server.log";
  options.config = started(kind, "--fault " + fault);
  options.model = table_model();
  options.model.gguf = traits_of(kind.kind).reads_gguf;
  options.sampling.vocabulary = kTableTokens;
  auto server = actors::Server::create(options, clock, log);
  const std::string base = Table(0).image();
  const auto engine =
      rollout::make_server_engine(std::move(server).value(), {}, std::as_bytes(std::span(base)));
  return engine ? "accepted" : engine.error().context;
}

void expect_refusal(const Kind& kind, const std::string& fault, const std::string& reason) {
  const std::string said = refusal(kind, fault);
  EXPECT_NE(said.find(reason), std::string::npos) << said;
}

class RestartedServer : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Servers,
                         RestartedServer,
                         testing::Values(Kind{EngineKind::Openai, "prompt_logprobs"},
                                         Kind{EngineKind::Openai, "echo"},
                                         Kind{EngineKind::Openai, "logit_bias"},
                                         Kind{EngineKind::Llamacpp, "logit_bias"}),
                         [](const auto& each) {
                           return std::string(name_of(each.param.kind)) + "_" + each.param.style;
                         });

TEST_P(RestartedServer, IsRestartedForEachVersion) {
  ServerWorld world(started(GetParam()));
  pid_t last = world.started_server();
  for (const std::uint64_t version : {1U, 2U}) {
    ASSERT_TRUE(world.publish(version));
    EXPECT_NE(world.started_server(), last);
    last = world.started_server();
    world.add_all(20);
    const auto all = world.finish();
    world.expect_whole(all, 20);
    for (const Generation& g : all) {
      ASSERT_EQ(g.segments.size(), 1U);
      EXPECT_EQ(g.segments[0].version, PolicyVersion(version));
    }
  }
  EXPECT_EQ(world.engine().waste().sampled_again, 0U);
}

TEST_P(RestartedServer, IsNotRestartedForTheSameWeights) {
  ServerWorld world(started(GetParam()));
  const pid_t first = world.started_server();
  ASSERT_TRUE(world.publish(0));
  EXPECT_EQ(world.started_server(), first);
}

TEST_P(RestartedServer, ResamplesUnfinishedResponsesAfterACommit) {
  ServerWorld world(started(GetParam(), "--token-seconds 0.1"));
  ASSERT_TRUE(world.publish(1));
  world.add_all(10);
  world.send_all();
  ASSERT_TRUE(world.publish(2));
  world.expect_whole(world.finish(), 10);
  EXPECT_GT(world.engine().waste().sampled_again, 0U);
}

/// Unless 5 is one of the server's own end tokens, it continues after it.
TEST_P(RestartedServer, ResponsesEndAtAnEndTokenUnknownToIt) {
  ServerWorld world(started(GetParam(), "--fault strict"), 1'000'000, {1, 5});
  ASSERT_TRUE(world.publish(1));
  world.add_all(50);
  const auto all = world.finish();
  world.expect_whole(all, 50);
  const auto ends_at_five = [](const Generation& g) { return g.tokens.back() == 5; };
  EXPECT_GT(std::ranges::count_if(all, ends_at_five), 0);
  EXPECT_EQ(world.engine().waste().sampled_again, 0U);
}

TEST_P(RestartedServer, AcceptsWeightsWithoutACanary) {
  ServerWorld world(started(GetParam()));
  ASSERT_TRUE(world.publish(1, /*with_canary=*/false));
  world.add_all(5);
  world.expect_whole(world.finish(), 5);
}

TEST_P(RestartedServer, IsRejectedIfItsLogProbsDifferFromThoseSampled) {
  ServerWorld world(started(GetParam(), "--fault wrong_logprobs"));
  const Status refused = world.publish(1);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("log-probs of sampled tokens"), std::string::npos)
      << refused.error().context;
}

/// Like a server whose command names another folder than {model}.
TEST_P(RestartedServer, IsRejectedIfItStartedWithOtherWeights) {
  const TemporaryFolder folder;
  actors::FolderModel model = table_model();
  model.gguf = traits_of(GetParam().kind).reads_gguf;
  const std::string other = Table(9).image();
  ASSERT_TRUE(
      actors::write_version_folder(folder / "other", std::as_bytes(std::span(other)), model));
  actors::EngineConfig config = started(GetParam());
  const std::size_t at = config.start.find("{model}");
  config.start.replace(at, 7, (folder / "other").string());
  config.start += " # {model}";
  ServerWorld world(config);
  const Status refused = world.publish(1);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("not the trained weights"), std::string::npos)
      << refused.error().context;
}

TEST_P(RestartedServer, SurvivesTenKillsWithoutLossOrMislabeling) {
  ServerWorld world(started(GetParam(), "--token-seconds 0.001"));
  std::vector<Generation> all = world.generate_through_kills(10);
  std::ranges::move(world.finish(), std::back_inserter(all));
  world.expect_whole(all, 10 * ServerWorld::kPerKill);
  EXPECT_GE(world.engine().waste().outages, 1U);
}

TEST(OpenaiServer, IsRefusedWithoutTokenIds) {
  expect_refusal({}, "no_token_ids", "the response has no token ids");
}

TEST(OpenaiServer, IsRefusedWithoutLogProbs) {
  expect_refusal({}, "no_logprobs", "found 1 and 0");
}

TEST(OpenaiServer, IsRefusedIfItPutsATokenBeforeThePrompt) {
  expect_refusal({}, "adds_bos", "counted 4 tokens for a prompt of 3");
}

TEST(OpenaiServer, IsRefusedIfItsWeightsCannotBeVerified) {
  expect_refusal({}, "no_scores", "none of three ways");
}

TEST(OpenaiServer, IsRefusedIfItsLogProbsIncludeABias) {
  expect_refusal({EngineKind::Openai, "logit_bias"}, "biased_logprobs", "include logit_bias");
}

TEST(LlamacppServer, IsRefusedWithoutTokenIds) {
  expect_refusal({EngineKind::Llamacpp, "logit_bias"}, "no_token_ids", "use a newer llama-server");
}

TEST(LlamacppServer, ResamplesAnAnswerThatLacksALogProb) {
  ServerWorld world(started({EngineKind::Llamacpp, "logit_bias"}));
  ASSERT_TRUE(world.publish(1));
  world.tell_started(R"({"faults": {"loses_logprob": 3}})");
  world.add_all(10);
  world.expect_whole(world.finish(), 10);
  EXPECT_EQ(world.engine().waste().sampled_again, 3U);
}

}  // namespace
}  // namespace temper::test
