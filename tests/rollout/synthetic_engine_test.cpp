#include "rollout/synthetic_engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace temper::rollout {
namespace {

using actors::FinishReason;

constexpr std::array<std::byte, 3> kImage{};

class Synthetic : public ::testing::Test {
 protected:
  /// An engine of responses of 8 tokens, 4 at once, with weights of version 0.
  Synthetic() { publish(0); }

  void publish(std::uint64_t version) {
    ASSERT_TRUE(engine_.stage(PolicyVersion(version), kImage));
    ASSERT_TRUE(engine_.commit(PolicyVersion(version)));
  }
  void add(std::uint64_t id, std::vector<std::int32_t> prefix = {}) {
    engine_.add({ResponseId(id), {5, 6}, std::move(prefix)});
  }
  StepResult step() {
    auto result = engine_.step();
    EXPECT_TRUE(result);
    return std::move(result).value_or(StepResult{});
  }

  RealClock clock_;
  SyntheticEngine engine_{{.tokens = Tokens(8), .concurrency = 4}, clock_};
};

TEST_F(Synthetic, FinishesAWholeBatchInAStepAndNoMore) {
  for (std::uint64_t id = 0; id < 6; ++id)
    add(id);
  const StepResult first = step();
  EXPECT_EQ(first.kind, StepKind::Decode);
  EXPECT_EQ(first.finished.size(), 4U);
  EXPECT_EQ(first.tokens, Tokens(32));
  EXPECT_EQ(engine_.load(), 2U);
  EXPECT_EQ(step().finished.size(), 2U);
  EXPECT_EQ(step().kind, StepKind::Idle);
}

TEST_F(Synthetic, StampsResponsesOfTheFixedLengthWithTheVersionInUse) {
  publish(7);
  add(3);
  const Generation g = step().finished.at(0);
  EXPECT_EQ(g.id, ResponseId(3));
  EXPECT_EQ(g.tokens.size(), 8U);
  EXPECT_EQ(g.logprobs, std::vector<float>(8, -1.0F));
  EXPECT_EQ(g.segments, (std::vector<actors::Segment>{{PolicyVersion(7), Tokens(8)}}));
  EXPECT_EQ(g.finish, FinishReason::Length);
  EXPECT_GE(*std::min_element(g.tokens.begin(), g.tokens.end()), 2);  // Neither pad nor end.
}

TEST_F(Synthetic, ContinuesAPrefixAsIfItHadNotBeenInterrupted) {
  add(3);
  const std::vector<std::int32_t> whole = step().finished.at(0).tokens;
  add(3, {whole.begin(), whole.begin() + 5});
  const Generation rest = step().finished.at(0);
  EXPECT_EQ(rest.tokens, std::vector<std::int32_t>(whole.begin() + 5, whole.end()));
  EXPECT_EQ(rest.segments.at(0).tokens, Tokens(3));
  add(3, whole);
  const Generation nothing = step().finished.at(0);
  EXPECT_TRUE(nothing.tokens.empty());
  EXPECT_TRUE(nothing.segments.empty());
}

TEST_F(Synthetic, WithdrawReturnsOnlyWhatIsNamed) {
  for (std::uint64_t id = 1; id <= 3; ++id)
    engine_.add({ResponseId(id), {}, {}});
  const std::vector<ResponseId> leaving{ResponseId(2), ResponseId(9)};
  const auto out = engine_.withdraw(leaving);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].id, ResponseId(2));
  EXPECT_EQ(out[0].finish, FinishReason::Interrupted);
  EXPECT_EQ(engine_.load(), 2U);
}

TEST_F(Synthetic, InterruptReturnsEveryResponseAndCancelForgetsThem) {
  for (std::uint64_t id = 0; id < 5; ++id)
    add(id);
  const std::array<ResponseId, 3> gone{ResponseId(1), ResponseId(4), ResponseId(99)};
  engine_.cancel(gone);
  EXPECT_EQ(engine_.load(), 3U);
  const auto interrupted = engine_.interrupt();
  ASSERT_EQ(interrupted.size(), 3U);
  EXPECT_EQ(interrupted[1].id, ResponseId(2));
  for (const Generation& g : interrupted) {
    EXPECT_EQ(g.finish, FinishReason::Interrupted);
    EXPECT_TRUE(g.tokens.empty());
  }
  EXPECT_EQ(engine_.load(), 0U);
}

TEST_F(Synthetic, CommitsOnlyWhatWasStagedAndNeverGoesBack) {
  EXPECT_FALSE(engine_.commit(PolicyVersion(1)));
  ASSERT_TRUE(engine_.stage(PolicyVersion(2), kImage));
  EXPECT_FALSE(engine_.commit(PolicyVersion(1)));
  EXPECT_EQ(engine_.version(), PolicyVersion(0));
  EXPECT_TRUE(engine_.commit(PolicyVersion(2)));
  ASSERT_TRUE(engine_.stage(PolicyVersion(1), kImage));
  EXPECT_FALSE(engine_.commit(PolicyVersion(1)));
  EXPECT_EQ(engine_.version(), PolicyVersion(2));
}

TEST_F(Synthetic, GivesItsMemoryBackOnlyWhenIdleAndNeedsItToStep) {
  EXPECT_EQ(engine_.memory().weights, Bytes(3));
  EXPECT_GT(engine_.memory().kv, Bytes(0));
  add(1);
  EXPECT_FALSE(engine_.free_kv());
  EXPECT_FALSE(engine_.free_weights());
  engine_.interrupt();
  EXPECT_TRUE(engine_.free_kv());
  EXPECT_TRUE(engine_.free_weights());
  EXPECT_EQ(engine_.memory().weights + engine_.memory().kv, Bytes(0));
  EXPECT_TRUE(engine_.step());  // Idle: nothing is needed.
  EXPECT_TRUE(engine_.allocate_kv());
  add(1);
  EXPECT_FALSE(engine_.step());  // No weights.
  publish(0);
  EXPECT_EQ(step().finished.size(), 1U);
}

TEST(SyntheticSpeed, IsAboveWhatTheOrchestratorMustCarry) {
  const RealClock clock;
  SyntheticEngine engine({.tokens = Tokens(256), .concurrency = 256}, clock);
  ASSERT_TRUE(engine.stage(PolicyVersion(0), kImage));
  ASSERT_TRUE(engine.commit(PolicyVersion(0)));
  constexpr std::uint64_t kResponses = 8192;
  double best = 0;  // Best of several rounds: the machine may be busy.
  for (int round = 0; round < 5; ++round) {
    std::size_t finished = 0;
    const Time begin = clock.now();
    for (std::uint64_t id = 0; id < kResponses; ++id) {
      engine.add({ResponseId(id), std::vector<std::int32_t>(16, 5), {}});
      if (id % 256 == 255)
        finished += engine.step()->finished.size();
    }
    best = std::max(best, kResponses / seconds(clock.now() - begin));
    ASSERT_EQ(finished, kResponses);
  }
  std::printf("%.0f responses/s of 256 tokens\n", best);
  EXPECT_GT(best, 20000);  // Also with a sanitizer; an idle core in release reaches ten times that.
}

}  // namespace
}  // namespace temper::rollout
