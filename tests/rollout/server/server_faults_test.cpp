// Faults of a server, one per test. Each must end either with every token labeled by its true
// version, or with an error that names the fault.
#include "tests/rollout/server/server_world.hpp"

#include <thread>

namespace temper::test {
namespace {

/// An engine at version 1 with a fake server of each kind.
class FaultsOf : public EveryServer {
 protected:
  FaultsOf() { EXPECT_TRUE(world_.publish(1)); }

  /// Ten responses that have three tokens each and cannot continue yet.
  void hold_ten() {
    fake_.tell(R"({"hold_after": 3})");
    world_.add_all(10);
    world_.send_all();
    fake_.await_begun(10);
  }
  void go_on() { fake_.tell(R"({"hold_after": null, "faults": {}})"); }
  void faults(const std::string& which) { fake_.tell(R"({"faults": {)" + which + "}}"); }
  void expect_not_paused() { EXPECT_EQ(fake_.state()["paused"], false); }
  /// The version is refused with this reason; the server continues, and the next version is
  /// committed.
  void expect_refused(const std::string& fault, const std::string& reason) {
    faults(fault);
    const Status refused = world_.publish(2);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().context.find(reason), std::string::npos) << refused.error().context;
    EXPECT_EQ(world_.engine().version(), PolicyVersion(1));
    expect_not_paused();
    faults("");
    ASSERT_TRUE(world_.publish(3));
    world_.add_all(5);
    world_.expect_whole(world_.finish(), 5);
  }
  /// The fault occurs once, and the version is still committed.
  void expect_tried_again(const std::string& fault) {
    faults(fault);
    const Status committed = world_.publish(2);
    ASSERT_TRUE(committed) << committed.error().context;
    expect_not_paused();
    world_.add_all(5);
    world_.expect_whole(world_.finish(), 5);
  }
  /// Twenty responses are complete and correct in spite of the fault, and this many attempts are
  /// counted.
  void expect_sampled_again(const std::string& fault, std::size_t count) {
    faults(fault);
    world_.add_all(20);
    world_.expect_whole(world_.finish(), 20);
    EXPECT_EQ(world_.engine().waste().sampled_again, count);
  }

  FakeServer fake_{GetParam()};
  ServerWorld world_{config_of(GetParam(), fake_.address())};
};
INSTANTIATE_TEST_SUITE_P(Servers, FaultsOf, testing::ValuesIn(servers_with_routes()), server_name);

// --- During a commit

TEST_P(FaultsOf, RequestsAdmittedDuringAPauseEndBeforeTheLoad) {
  hold_ten();
  faults(R"("admits_during_pause": -1)");
  ASSERT_TRUE(world_.publish(2));
  EXPECT_EQ(fake_.state()["running"], 0);
  go_on();
  world_.expect_whole(world_.finish(), 10);
}

TEST_P(FaultsOf, AnUnansweredRequestDoesNotDelayACommit) {
  faults(R"("hangs": 2)");
  fake_.tell(R"({"hold_after": 0})");
  world_.add_all(4);
  world_.send_all();
  fake_.await_begun(2);
  ASSERT_TRUE(world_.publish(2));
  EXPECT_EQ(world_.engine().waste().sampled_again, 2U);
  go_on();
  world_.expect_whole(world_.finish(), 4);
}

TEST_P(FaultsOf, ALateResumeIsAwaited) {
  expect_tried_again(R"("late_resume": 1)");
}

TEST_P(FaultsOf, AFailedResumeIsRepeated) {
  expect_tried_again(R"("resume_fails": 3)");
}

TEST_P(FaultsOf, AFailedPauseIsRetriedAndLeavesNoPause) {
  expect_tried_again(R"("pause_fails": 1)");
}

TEST_P(FaultsOf, ALoadThatFailsOnceIsRetried) {
  expect_tried_again(R"("load_fails": 1)");
}

TEST_P(FaultsOf, AFailedLoadLeavesTheServerRunningWithItsOldVersion) {
  expect_refused(R"("load_fails": -1)", "out of memory");
}

TEST_P(FaultsOf, TheCanaryDetectsUndeliveredWeights) {
  expect_refused(R"("not_applied": -1)", "not the trained weights");
}

TEST_P(FaultsOf, WeightsLostOnceAreSentAgain) {
  expect_tried_again(R"("not_applied": 1)");
}

TEST_P(FaultsOf, TheCanaryDetectsHalfAppliedWeights) {
  expect_refused(R"("half_applied": -1)", "not the trained weights");
}

TEST_P(FaultsOf, AServerWithAnotherLabelIsRejected) {
  expect_refused(R"("wrong_label": -1)", "v999-never");
}

TEST_P(FaultsOf, AServerThatKeepsItsLabelIsRejected) {
  expect_refused(R"("default_label": -1)", "the server reports weights");
}

TEST_P(FaultsOf, ACommitDetectsLogProbsThatDifferFromThoseSampled) {
  expect_refused(R"("wrong_logprobs": -1)", "processed_logprobs");
}

TEST_P(FaultsOf, OnlyTheServerWithoutTheWeightsFailsTheCommit) {
  FakeServer other(GetParam());
  ServerWorld second(config_of(GetParam(), other.address()));
  ASSERT_TRUE(second.publish(1));
  other.tell(R"({"faults": {"not_applied": -1}})");
  EXPECT_TRUE(world_.publish(2));
  EXPECT_FALSE(second.publish(2));
  EXPECT_EQ(second.engine().version(), PolicyVersion(1));
}

// --- During generation

TEST_P(FaultsOf, TokensOfAnUnknownVersionAreResampled) {
  expect_sampled_again(R"("labels_default": 3)", 3);
  EXPECT_GT(world_.engine().waste().uncertain_tokens, 0U);
}

TEST_P(FaultsOf, TheLabelIsRequestedAfterUnlabeledTokens) {
  expect_sampled_again(R"("no_labels": -1)", 0);
}

TEST_P(FaultsOf, UnlabeledTokensAreUncertainIfTheLabelThenDiffers) {
  faults(R"("no_labels": -1, "wrong_label": 1)");
  world_.add_all(20);
  world_.expect_whole(world_.finish(), 20);
  EXPECT_GE(world_.engine().waste().sampled_again, 1U);
  EXPECT_GE(world_.engine().waste().uncertain_tokens, 1U);
}

TEST_P(FaultsOf, ABusyServerIsRetried) {
  expect_sampled_again(R"("status_503": 3)", 3);
}

TEST_P(FaultsOf, AnAnswerLostWithItsConnectionIsResampled) {
  expect_sampled_again(R"("cut": 3)", 3);
}

TEST_P(FaultsOf, ATruncatedAnswerIsResampled) {
  expect_sampled_again(R"("truncated": 3)", 3);
}

TEST_P(FaultsOf, AnAnswerWithTooManyTokensIsResampled) {
  faults(R"("too_many_tokens": -1)");
  world_.add_all(1);
  const auto all = world_.finish();
  ASSERT_EQ(all.size(), 1U);
  // Without an earlier end it returns one token too many: then the response is abandoned, or has
  // ended.
  EXPECT_TRUE(all[0].finish == FinishReason::Failed || all[0].tokens.back() == 1);
}

TEST_P(FaultsOf, WrongLogProbsAreDetectedAndTheWeightsLoadedAgain) {
  ServerWorld careful(config_of(GetParam(), fake_.address()), /*compare_every=*/1);
  ASSERT_TRUE(careful.publish(1));
  faults(R"("wrong_logprobs": 1)");
  careful.add_all(10);
  careful.expect_whole(careful.finish(), 10);
  EXPECT_EQ(careful.engine().waste().sampled_again, 1U);
  EXPECT_EQ(careful.engine().waste().outages, 1U);
}

TEST(FaultsOfSglang, ARefusedFlushIsRetried) {
  FakeServer fake(EngineKind::Sglang);
  ServerWorld world(config_of(EngineKind::Sglang, fake.address()));
  fake.tell(R"({"faults": {"slow_flush": 3}})");
  EXPECT_TRUE(world.publish(1));
}

// --- When the server dies

TEST_P(FaultsOf, ARestartedServerGetsItsVersionAgain) {
  hold_ten();
  fake_.kill();
  fake_.start_again();
  world_.expect_whole(world_.finish(), 10);
  EXPECT_GE(world_.engine().waste().outages, 1U);
  EXPECT_EQ(fake_.state()["label"].get<std::string>().substr(0, 3), "v1-");
}

TEST_P(FaultsOf, ACommitWaitsForAServerThatIsAway) {
  fake_.kill();
  std::jthread later([this] { fake_.start_again(); });
  ASSERT_TRUE(world_.publish(2));
  later.join();
  world_.add_all(5);
  world_.expect_whole(world_.finish(), 5);
}

TEST_P(FaultsOf, AServerThatIsLostDuringItsWarmUpIsWaitedForAgain) {
  faults(R"("cut": 1)");
  ServerWorld begun(config_of(GetParam(), fake_.address()));
  EXPECT_EQ(begun.engine().waste().outages, 1U);
  ASSERT_TRUE(begun.publish(1));
  begun.add_all(5);
  begun.expect_whole(begun.finish(), 5);
}

TEST_P(FaultsOf, TwentyKillsCauseNoLossOrMislabeling) {
  actors::EngineConfig config = config_of(GetParam(), "");
  const TemporaryFolder folder;
  config.data.clear();
  config.folder = folder.path();
  config.start = fake_server_command(GetParam(), "--token-seconds 0.001");
  ServerWorld world(config);
  std::vector<Generation> all = world.generate_through_kills(20);
  ASSERT_TRUE(world.publish(21));
  std::ranges::move(world.finish(), std::back_inserter(all));
  world.expect_whole(all, 20 * ServerWorld::kPerKill);
  EXPECT_GE(world.engine().waste().outages, 10U);
}

}  // namespace
}  // namespace temper::test
