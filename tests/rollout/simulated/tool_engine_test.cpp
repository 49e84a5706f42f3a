// A simulated engine whose responses call tools. Its times against a naive simulation:
// simulated_naive_test.cpp.
#include "actors/simulation/tool_calls.hpp"
#include "tests/rollout/simulated/simulated_world.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace temper::rollout {
namespace {

using actors::CardState;

/// Turns of 100 tokens, answers of 50 after ten seconds.
actors::SimulationSettings calling_engine() {
  auto s = small_engine();
  const auto constant = [](actors::LengthConfig& lengths, double mean) {
    lengths.kind = actors::LengthKind::Constant;
    lengths.mean = mean;
  };
  actors::ToolConfig& tools = s.config.tools.emplace();
  constant(tools.turn, 100);
  constant(tools.result, 50);
  tools.latency.p99_over_median = 1;
  return s;
}

std::vector<Scheduled> one_group(std::uint64_t size) {
  return {at(time_of(10), work(1, size)[0])};
}

TEST(ToolEngine, WaitsForTheToolsOfItsOnlyResponse) {
  auto s = calling_engine();
  s.config.response.kind = actors::LengthKind::Constant;  // 300 tokens: 100 + 50 + 100 + 49 + 1.
  World world(s);
  world.run(one_group(1));
  EXPECT_EQ(time_in(world, CardState::WaitTools), std::chrono::seconds(20));
  EXPECT_EQ(world.actor().counters().decode_steps, 201);
  ASSERT_EQ(world.ended().size(), 1U);
  EXPECT_EQ(world.ended()[0].tokens, Tokens(300));
}

TEST(ToolEngine, AccountsForAllTimeFromWorkToLastReport) {
  World world(calling_engine());
  world.run(one_group(8));
  Duration sum{};
  for (const CardState state : {CardState::Prefill, CardState::Decode, CardState::WaitTools})
    sum += time_in(world, state);
  EXPECT_EQ(time_of(10) + sum, world.now());
}

TEST(ToolEngine, GeneratesAnotherResponseWhileOneWaits) {
  auto s = calling_engine();
  s.config.response.kind = actors::LengthKind::Constant;
  s.concurrency = 1;
  World one(s), two(s);
  one.run(one_group(1));
  two.run(one_group(2));
  EXPECT_EQ(two.ended().size(), 2U);
  EXPECT_LT(time_in(two, CardState::WaitTools), time_in(one, CardState::WaitTools));
  EXPECT_EQ(time_in(two, CardState::Decode) / time_in(one, CardState::Decode), 2);
}

TEST(ToolEngine, GivesTheNextCallToAToolThatIsFree) {
  auto s = calling_engine();
  s.config.response.kind = actors::LengthKind::Constant;
  s.config.tools->pool = 1;
  World world(s);
  world.run(one_group(4));
  EXPECT_EQ(world.ended().size(), 4U);
  Duration busy{};
  for (const CardState state : {CardState::WaitTools, CardState::Decode, CardState::Prefill})
    busy += time_in(world, state);
  EXPECT_GE(busy, std::chrono::seconds(80)) << "eight calls, one after another";
}

TEST(ToolEngine, SaysTheSameWheneverItIsAsked) {
  auto s = calling_engine();
  s.config.tools->pool = 20;
  s.config.tools->latency.p99_over_median = 8;
  limit_cache(s, 3000);
  for (const bool chunked : {true, false}) {
    s.config.rollout.chunked_prefill = chunked;
    expect_the_same_whenever_asked(s);
  }
}

TEST(ToolEngine, HandsOverACallThatContinuesWhenItsResponseIsInterrupted) {
  auto s = calling_engine();
  s.config.response.kind = actors::LengthKind::Constant;
  World world(s);
  const auto interrupt = actors::Switch{actors::SwitchAction::Interrupt};
  world.run({at(time_of(10), work(1, 1)[0]), at(time_of(17), interrupt)});
  ASSERT_EQ(world.ended().size(), 1U);
  EXPECT_EQ(world.ended()[0].tokens, Tokens(100));
  EXPECT_TRUE(world.ended()[0].cached);
  ASSERT_TRUE(world.ended()[0].answered);
  EXPECT_GT(*world.ended()[0].answered, time_of(20));  // Ten seconds after the first turn.

  auto rest = work(1, 1)[0];
  rest.items[0].prefix = Tokens(100);
  rest.items[0].answered = world.ended()[0].answered;
  const auto waited = [&](double from) {
    World other(s);
    other.run({at(time_of(from), rest)});
    EXPECT_EQ(other.ended().size(), 1U);
    EXPECT_EQ(other.ended()[0].tokens, Tokens(200));
    return time_in(other, CardState::WaitTools);
  };
  const Duration second_call = std::chrono::seconds(10);
  EXPECT_EQ(waited(18), *rest.items[0].answered - time_of(18) + second_call);
  EXPECT_EQ(waited(60), second_call) << "the answer is there already";
  rest.items[0].answered.reset();
  EXPECT_EQ(waited(18), 2 * second_call) << "nobody has called";
}

TEST(ToolEngine, HandsOverAnAnswerWithoutTokens) {
  auto s = calling_engine();
  s.config.response.kind = actors::LengthKind::Constant;
  s.config.response.mean = 101;  // A turn, an answer of no tokens, and the last token.
  s.config.tools->latency.mean = std::chrono::milliseconds(1);
  World alone(s);
  alone.run(one_group(1));
  ASSERT_EQ(alone.ended().size(), 1U);

  // The first response has its answer, and waits for the slot of the second.
  s.concurrency = 1;
  World world(s);
  const auto interrupt = actors::Switch{actors::SwitchAction::Interrupt};
  world.run({at(time_of(10), work(1, 2)[0]), at(alone.now(), interrupt)});
  ASSERT_EQ(world.ended().size(), 2U);
  const auto first = world.ended()[0];
  ASSERT_EQ(first.tokens, Tokens(100));
  ASSERT_TRUE(first.answered);
  EXPECT_LT(*first.answered, alone.now());

  s.config.tools->latency.mean = std::chrono::seconds(10);
  auto rest = work(1, 1)[0];
  rest.items[0].prefix = Tokens(100);
  rest.items[0].answered = first.answered;
  World other(s);
  other.run({at(time_of(60), rest)});
  ASSERT_EQ(other.ended().size(), 1U);
  EXPECT_EQ(other.ended()[0].tokens, Tokens(1));
  EXPECT_EQ(time_in(other, CardState::WaitTools), Duration{}) << "the tool is not called again";
}

TEST(ToolEngine, GivesNoToolToACallThatContinuesElsewhere) {
  auto s = calling_engine();
  s.config.response.kind = actors::LengthKind::Constant;
  s.config.tools->pool = 1;
  auto moved = work(1, 2)[0];
  moved.items[0].prefix = Tokens(100);
  moved.items[0].answered = time_of(1000);
  World world(s);
  world.run({at(time_of(10), moved)});
  ASSERT_EQ(world.ended().size(), 2U);
  EXPECT_EQ(world.ended()[0].response, moved.items[1].response);
  const auto reports = std::ranges::find_if(
      world.sent(), [](const Sent& sent) { return sent.is<actors::CountedGenerated>(); });
  EXPECT_LT(reports->at, time_of(100)) << "its two calls did not wait for the other";
}

TEST(ToolEngine, RejectsAMeanLatencyAboveItsCap) {
  auto s = calling_engine();
  s.config.tools->latency.mean = std::chrono::hours(1);
  SimulatedRollout actor(s, 1, PolicyVersion(0));
  actors::Outbox out([](actors::OutgoingMessage) {});
  EXPECT_FALSE(actor.start(Time{}, out));
}

}  // namespace
}  // namespace temper::rollout
