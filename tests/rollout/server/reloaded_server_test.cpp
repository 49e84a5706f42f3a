// An engine for an external OpenAI-compatible server that loads new weights on request
// (`engine.reload`), but never reports which it has.
#include "tests/rollout/server/server_world.hpp"

namespace temper::test {
namespace {

actors::EngineConfig reloaded(const std::string& address) {
  actors::EngineConfig config = config_of(EngineKind::Openai, address);
  config.reload = R"(POST /reload {"path": "{model}", "name": "{label}"})";
  return config;
}

/// An engine at version 1 with a fake for each way of returning token ids and log-probs.
class ReloadedServer : public testing::TestWithParam<std::string> {
 protected:
  ReloadedServer() { EXPECT_TRUE(world_.publish(1)); }

  void faults(const std::string& which) { fake_.tell(R"({"faults": {)" + which + "}}"); }
  void expect_refused(const std::string& fault, const std::string& reason) {
    faults(fault);
    const Status refused = world_.publish(2);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().context.find(reason), std::string::npos) << refused.error().context;
    EXPECT_EQ(world_.engine().version(), PolicyVersion(1));
    faults("");
    ASSERT_TRUE(world_.publish(3));
    world_.add_all(5);
    world_.expect_whole(world_.finish(), 5);
  }

  FakeServer fake_{EngineKind::Openai, {"--style", GetParam()}};
  ServerWorld world_{reloaded(fake_.address())};
};
INSTANTIATE_TEST_SUITE_P(Styles,
                         ReloadedServer,
                         testing::Values("prompt_logprobs", "echo", "logit_bias"),
                         [](const auto& each) { return each.param; });

TEST_P(ReloadedServer, GeneratesWithTheLoadedVersion) {
  world_.add_all(20);
  world_.expect_whole(world_.finish(), 20);
  ASSERT_TRUE(world_.publish(2));
  world_.add_all(20);
  world_.expect_whole(world_.finish(), 20);
  EXPECT_EQ(world_.engine().waste().sampled_again, 0U);
}

TEST_P(ReloadedServer, TheCanaryDetectsAnIgnoredLoad) {
  expect_refused(R"("not_applied": -1)", "not the trained weights");
}

TEST_P(ReloadedServer, RepeatsALoadThatWasIgnoredOnce) {
  faults(R"("not_applied": 1)");
  ASSERT_TRUE(world_.publish(2));
  world_.add_all(5);
  world_.expect_whole(world_.finish(), 5);
}

TEST_P(ReloadedServer, TheCanaryDetectsHalfAppliedWeights) {
  expect_refused(R"("half_applied": -1)", "not the trained weights");
}

TEST_P(ReloadedServer, IsRejectedIfItCannotLoad) {
  expect_refused(R"("load_fails": -1)", "out of memory");
}

TEST_P(ReloadedServer, ACommitDetectsLogProbsThatDifferFromThoseSampled) {
  expect_refused(R"("wrong_logprobs": -1)", "log-probs of sampled tokens");
}

TEST_P(ReloadedServer, TheCanaryDetectsARestartBeforeATokenCounts) {
  fake_.kill();
  fake_.start_again();
  world_.add_all(10);
  world_.expect_whole(world_.finish(), 10);
  EXPECT_GE(world_.engine().waste().uncertain_tokens + world_.engine().waste().sampled_again, 1U);
  EXPECT_GE(world_.engine().waste().outages, 1U);
}

TEST_P(ReloadedServer, ItsLabelCountsIfAVersionHasNoCanary) {
  ASSERT_TRUE(world_.publish(2, /*with_canary=*/false));
  fake_.kill();
  fake_.start_again();
  world_.add_all(10);
  world_.expect_whole(world_.finish(), 10);
  EXPECT_GE(world_.engine().waste().outages, 1U);
}

TEST_P(ReloadedServer, IsRetriedIfBusy) {
  faults(R"("status_503": 3)");
  world_.add_all(20);
  world_.expect_whole(world_.finish(), 20);
}

}  // namespace
}  // namespace temper::test
