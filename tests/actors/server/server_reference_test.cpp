// The reference engine over a fake server: scores must be those of the base weights whatever the
// server did in between, or an error must explain why not.
#include "actors/server/server_reference.hpp"

#include "tests/rollout/server/server_world.hpp"

namespace temper::test {
namespace {

constexpr std::uint64_t kBase = 7;  ///< Seed of the reference's table.

class ServerReferenceOver : public EveryServer {
 protected:
  ServerReferenceOver() {
    actors::ServerOptions options;
    options.config = config_of(GetParam(), fake_.address());
    options.name = "reference-0";
    options.model = table_model();
    options.sampling.vocabulary = kTableTokens;
    options.connections = 8;
    options.probe_deadline = std::chrono::seconds(1);
    auto server = actors::Server::create(std::move(options), clock_, log_).value();
    const std::string image = Table(kBase).image(/*with_canary=*/false);
    auto made = actors::make_server_reference(std::move(server), std::as_bytes(std::span(image)));
    EXPECT_TRUE(made) << made.error().context;
    reference_ = std::move(made).value();
  }
  void faults(const std::string& which) { fake_.tell(R"({"faults": {)" + which + "}}"); }

  static std::vector<actors::ScoringRequest> batch() {
    std::vector<actors::ScoringRequest> requests{{{3, 4}, {5, 6, 1}}, {{2}, {}}, {{9, 8, 7}, {1}}};
    for (std::int32_t i = 0; i < 30; ++i)  // More than there are connections.
      requests.push_back({{2, 3}, {2 + i % 10, 1}});
    return requests;
  }
  void expect_right_scores() {
    const auto scores = reference_->score(batch());
    ASSERT_TRUE(scores) << scores.error().context;
    const auto& logprobs = scores->logprobs;
    ASSERT_EQ(logprobs.size(), batch().size());
    const Table table(kBase);
    for (std::size_t i = 0; i < logprobs.size(); ++i) {
      const auto request = batch()[i];
      ASSERT_EQ(logprobs[i].size(), request.response.size());
      std::int32_t last = request.prompt.back();
      for (std::size_t t = 0; t < request.response.size(); ++t) {
        EXPECT_NEAR(logprobs[i][t], table.logprob(last, request.response[t]), 1e-4);
        last = request.response[t];
      }
    }
  }

  FakeServer fake_{GetParam()};
  RealClock clock_;
  Log log_ = Log::discard();
  std::unique_ptr<actors::ReferenceEngine> reference_;
};
INSTANTIATE_TEST_SUITE_P(Servers,
                         ServerReferenceOver,
                         testing::ValuesIn(servers_with_routes()),
                         server_name);

TEST_P(ServerReferenceOver, ScoresEachTokenOfTheResponsesUnderTheBaseWeights) {
  expect_right_scores();
}

TEST_P(ServerReferenceOver, ScoresUnderTheBaseWeightsAfterARestart) {
  fake_.kill();
  fake_.start_again();
  expect_right_scores();
}

TEST_P(ServerReferenceOver, ScoresUnderTheBaseWeightsAfterOthersWereLoaded) {
  const TemporaryFolder folder;
  actors::EngineConfig config = config_of(GetParam(), fake_.address());
  config.folder = folder.path();
  ServerWorld intruder(config);
  ASSERT_TRUE(intruder.publish(3));
  expect_right_scores();
}

TEST_P(ServerReferenceOver, RetriesRefusedAndTruncatedRequests) {
  faults(R"("status_503": 2, "cut": 2, "truncated": 2)");
  expect_right_scores();
}

TEST_P(ServerReferenceOver, NamesTheReasonIfTheServerCannotScore) {
  faults(R"("status_503": -1)");
  const auto scores = reference_->score(batch());
  ASSERT_FALSE(scores);
  EXPECT_NE(scores.error().context.find("status 503"), std::string::npos) << scores.error().context;
}

TEST_P(ServerReferenceOver, RejectsAnEmptyPrompt) {
  const std::vector<actors::ScoringRequest> requests{{{}, {3, 1}}};
  EXPECT_FALSE(reference_->score(requests));
}

}  // namespace
}  // namespace temper::test
