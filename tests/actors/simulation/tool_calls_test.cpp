#include "actors/simulation/tool_calls.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace temper::actors {
namespace {

constexpr std::int64_t kLength = 4000;

ToolConfig spread_tools() {
  ToolConfig c;
  c.turn.mean = 300;
  c.result.mean = 200;
  return c;
}

std::vector<ToolCall> all_calls(const ToolCalls& tools, ResponseId r, std::int64_t length) {
  std::vector<ToolCall> out;
  for (auto c = tools.left(r, length, 0).next; c; c = tools.after(r, length, *c))
    out.push_back(*c);
  return out;
}

TEST(ToolCalls, DivideAResponseOfConstantTurnsAndResults) {
  ToolConfig c;
  c.turn = {.kind = LengthKind::Constant, .mean = 100, .weights = {}, .trace = {}, .lengths = {}};
  c.result = {.kind = LengthKind::Constant, .mean = 50, .weights = {}, .trace = {}, .lengths = {}};
  const ToolCalls tools(c, 1);
  const auto calls = all_calls(tools, ResponseId(7), 420);
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0].at, 100);
  EXPECT_EQ(calls[1].at, 250);
  EXPECT_EQ(calls[2].at, 400);
  EXPECT_EQ(calls[1].result, 50);
  EXPECT_EQ(calls[2].result, 19) << "one sampled token follows";
}

TEST(ToolCalls, EndBeforeTheResponseDoes) {
  const ToolCalls tools(spread_tools(), 1);
  for (std::uint64_t r = 0; r < 1000; ++r) {
    const std::int64_t length = 1 + static_cast<std::int64_t>(r * 7 % kLength);
    std::int64_t tokens = 0;
    for (const ToolCall& c : all_calls(tools, ResponseId(r), length)) {
      EXPECT_GT(c.at, tokens) << "a turn has a token";
      tokens = c.at + c.result;
      EXPECT_LT(tokens, length);
    }
  }
}

TEST(ToolCalls, AreThoseThatAPrefixHasNotAnswered) {
  const ToolCalls tools(spread_tools(), 1);
  for (std::uint64_t r = 0; r < 100; ++r) {
    const auto calls = all_calls(tools, ResponseId(r), kLength);
    std::int64_t results = 0;
    for (std::size_t i = calls.size(); i-- > 0;) {
      results += calls[i].result;
      const auto left = tools.left(ResponseId(r), kLength, calls[i].at);
      ASSERT_TRUE(left.next);
      EXPECT_EQ(left.next->index, i);
      EXPECT_EQ(left.results, results);
    }
    EXPECT_FALSE(tools.left(ResponseId(r), kLength, kLength - 1).next);
  }
}

TEST(ToolCalls, TakeTheConfiguredTimeOnAverageAndAtMostTheCap) {
  ToolConfig c = spread_tools();
  c.latency.mean = std::chrono::seconds(20);
  c.latency.cap = std::chrono::minutes(2);
  const ToolCalls tools(c, 1);
  double sum = 0;
  constexpr int kResponses = 20000;
  for (std::uint64_t r = 0; r < kResponses; ++r) {
    const Duration latency = tools.latency(ResponseId(r), {r % 5, 0, 0});
    EXPECT_LE(latency, c.latency.cap);
    sum += seconds(latency);
  }
  EXPECT_NEAR(sum / kResponses, 20, 0.5);
}

TEST(ToolCalls, AreMadeAgainAsOftenAsTheyFail) {
  ToolConfig c = spread_tools();
  c.latency.mean = std::chrono::seconds(10);
  c.latency.p99_over_median = 1;
  c.failure_rate = 0.25;
  const ToolCalls tools(c, 1);
  double attempts = 0;
  constexpr int kResponses = 20000;
  for (std::uint64_t r = 0; r < kResponses; ++r)
    attempts += seconds(tools.latency(ResponseId(r), {r % 5, 0, 0})) / 10;
  EXPECT_NEAR(attempts / kResponses, 1 / 0.75, 0.02);
}

TEST(ToolCalls, TakeTheTimesOfATraceInOrder) {
  ToolConfig c = spread_tools();
  c.latency.trace = "latencies.json";
  c.latency.milliseconds = {100, 2000, 30};
  const ToolCalls tools(c, 1);
  std::vector<Duration> all;
  for (std::uint64_t i = 0; i < 4; ++i)
    all.push_back(tools.latency(ResponseId(3), {i, 0, 0}));
  EXPECT_EQ(all[0], all[3]);
  EXPECT_EQ(all[0] + all[1] + all[2], std::chrono::milliseconds(2130));
}

}  // namespace
}  // namespace temper::actors
