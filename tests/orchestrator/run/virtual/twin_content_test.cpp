// The content of a twin with synthetic engines in its workers: what goes to which worker, in which
// order, and what comes back. tests/system/twin_test.cpp has the real policy.
#include "orchestrator/run/virtual/twin_content.hpp"

#include "actors/asio/asio.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

class TwinWorkers : public ::testing::Test {
 protected:
  TwinWorkers() {
    config.policy = actors::PolicyKind::Synthetic;
    config.algorithm.groups_per_update = 2;
    config.algorithm.responses_per_group = 2;
    config.algorithm.minibatches = 1;
    config.staleness.bound = 1;
    config.rollout.replicas = 3;
    config.synthetic.tokens = Tokens(3);
    config.transport.heartbeat_timeout = std::chrono::seconds(60);  // a busy machine is no failure
  }
  ~TwinWorkers() override { content.reset(); }

  Status start() {
    TwinOptions options{resolve_cards(config), {}, worker, [this](std::string_view name) {
                          started.emplace_back(name);
                          return folder_ / (std::string(name) + ".log");
                        }};
    TEMPER_TRY(content, TwinContent::create(io_, std::move(options), Log::to_stderr(clock_)));
    return {};
  }
  static std::vector<ResponseId> responses_of(std::uint64_t group) {
    return {ResponseId(2 * group), ResponseId(2 * group + 1)};
  }
  Status sample(std::uint64_t group, std::uint64_t version) {
    return content->sample(
        {LeaseId(++leases_), GroupId(group), PolicyVersion(version), responses_of(group)});
  }
  /// Scores and judges the group; the verdicts.
  Result<actors::Judged> finish(std::uint64_t group) {
    TEMPER_TRY_STATUS(content->score(LeaseId(++leases_), responses_of(group)));
    const LeaseId lease(++leases_);
    TEMPER_TRY_STATUS(content->judge(lease, responses_of(group)));
    return content->judged(lease);
  }
  /// An update of `step` on groups dispatched at these versions.
  Result<actors::UpdateMetrics> train(
      std::uint64_t step, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& groups) {
    const LeaseId lease(++leases_);
    actors::Certificate certificate{PolicyVersion(step), 1, {}};
    std::vector<ResponseId> responses;
    for (const auto& [group, version] : groups) {
      certificate.groups.push_back({GroupId(group), PolicyVersion(version)});
      const auto own = responses_of(group);
      responses.insert(responses.end(), own.begin(), own.end());
    }
    TEMPER_TRY_STATUS(content->train(lease, certificate, responses));
    return content->trained(lease);
  }
  bool has_started(std::string_view name) const {
    return std::find(started.begin(), started.end(), name) != started.end();
  }

  PipelineConfig config;
  fs::path worker = TEMPER_WORKER;
  std::vector<std::string> started;
  std::unique_ptr<TwinContent> content;

 private:
  const RealClock clock_;
  boost::asio::io_context io_{1};
  const test::TemporaryFolder folder_;
  std::uint64_t leases_ = 0;
};

TEST_F(TwinWorkers, SampleScoreJudgeAndTrain) {
  ASSERT_TRUE(start());
  ASSERT_TRUE(sample(0, 0));
  ASSERT_TRUE(sample(1, 0));
  for (const std::uint64_t group : {0U, 1U}) {
    const auto judged = finish(group);
    ASSERT_TRUE(judged) << judged.error().context;
    EXPECT_EQ(judged->items.size(), 2U);
  }
  const auto metrics = train(0, {{0, 0}, {1, 0}});
  ASSERT_TRUE(metrics) << metrics.error().context;
  EXPECT_GT(metrics->tokens, Tokens(4 * 3));
  EXPECT_EQ(started,
            (std::vector<std::string>{
                "twin-trainer", "twin-reward", "twin-reference", "twin-rollout-0"}));
}

TEST_F(TwinWorkers, AnOlderVersionGoesToARolloutOfItsOwn) {
  ASSERT_TRUE(start());
  ASSERT_TRUE(sample(0, 0));
  ASSERT_TRUE(sample(1, 0));
  ASSERT_TRUE(finish(0));
  ASSERT_TRUE(finish(1));
  ASSERT_TRUE(train(0, {{0, 0}, {1, 0}}));
  ASSERT_TRUE(sample(2, 1)) << "the first rollout goes on";
  EXPECT_FALSE(has_started("twin-rollout-1"));
  ASSERT_TRUE(sample(3, 0)) << "an engine that lags";
  EXPECT_TRUE(has_started("twin-rollout-1"));
  ASSERT_TRUE(sample(4, 1));
  ASSERT_TRUE(sample(5, 0));
  EXPECT_FALSE(has_started("twin-rollout-2"));
  for (const std::uint64_t group : {2U, 3U, 4U, 5U})
    EXPECT_TRUE(finish(group)) << group;
  // The trainer checks that no response is older than its certificate says.
  const auto metrics = train(1, {{2, 1}, {3, 0}});
  EXPECT_TRUE(metrics) << metrics.error().context;
}

TEST_F(TwinWorkers, ACertificateThatDoesNotHoldIsRefused) {
  ASSERT_TRUE(start());
  ASSERT_TRUE(sample(0, 0));
  ASSERT_TRUE(finish(0));
  const auto refused = train(0, {{0, 1}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().context.find("twin-trainer: certificate rejected"), std::string::npos)
      << refused.error().context;
}

TEST_F(TwinWorkers, AResponseThatBeginsAnewIsWhatItsLastDispatchMade) {
  ASSERT_TRUE(start());
  ASSERT_TRUE(sample(0, 0));
  ASSERT_TRUE(sample(1, 0));
  ASSERT_TRUE(finish(0));
  ASSERT_TRUE(finish(1));
  ASSERT_TRUE(train(0, {{0, 0}, {1, 0}}));
  ASSERT_TRUE(sample(2, 0));
  ASSERT_TRUE(sample(2, 1));
  ASSERT_TRUE(finish(2));
  // Version 1 began it: the trainer would refuse a response that is older.
  EXPECT_TRUE(train(1, {{2, 1}}));
}

TEST_F(TwinWorkers, AGroupMayBeReleasedWhileItIsScored) {
  ASSERT_TRUE(start());
  ASSERT_TRUE(sample(0, 0));
  ASSERT_TRUE(content->score(LeaseId(100), responses_of(0)));
  content->release(GroupId(0));
  ASSERT_TRUE(sample(1, 0));
  EXPECT_TRUE(finish(1));
}

TEST_F(TwinWorkers, WithoutAReferenceTrainAsWell) {
  config.reference.replicas = 0;
  ASSERT_TRUE(start());
  EXPECT_FALSE(has_started("twin-reference"));
  ASSERT_TRUE(sample(0, 0));
  ASSERT_TRUE(content->judge(LeaseId(50), responses_of(0)));
  ASSERT_TRUE(content->judged(LeaseId(50)));
  EXPECT_TRUE(train(0, {{0, 0}}));
}

TEST_F(TwinWorkers, AVersionThatWasNotPublishedIsAnError) {
  ASSERT_TRUE(start());
  const Status status = sample(0, 1);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().context.find("version 1 is not"), std::string::npos);
}

TEST_F(TwinWorkers, AWorkerThatEndsIsNamed) {
  worker = "/bin/false";
  const Status status = start();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().context.find("twin-"), std::string::npos) << status.error().context;
  EXPECT_NE(status.error().context.find("exit code 1"), std::string::npos);
}

}  // namespace
}  // namespace temper::orchestrator
