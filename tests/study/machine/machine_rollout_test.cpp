// A rollout actor of a forecast, driven by hand.
#include "study/machine/machine_rollout.hpp"

#include "actors/protocol/lifecycle.hpp"

#include <gtest/gtest.h>

namespace temper::study {
namespace {

/// Decode steps take 2 ms, and a tool answers 50 ms after the first token.
MachineWorld calling_world() {
  MachineWorld world;
  EngineTimes engine;
  engine.threads = 1;
  engine.decode = {{1, 2000, 0}, {1024, 2000, 0}};
  world.calibration.engines.push_back(engine);
  world.prompt_length = [](GroupId) { return Tokens(3); };
  world.response_length = [](ResponseId, GroupId) { return Tokens(4); };
  actors::ToolConfig tools;
  tools.turn.kind = tools.result.kind = actors::LengthKind::Constant;
  tools.turn.mean = tools.result.mean = 1;
  tools.latency.mean = std::chrono::milliseconds(50);
  tools.latency.p99_over_median = 1;
  world.tools.emplace(tools, 1);
  return world;
}

TEST(MachineRollout, ShowsTheWaitForToolsThatTheEndOfTheRunCutsOff) {
  MachineWorld world = calling_world();
  orchestrator::ActorSpec slot;
  slot.cards = {CardId(0)};
  slot.concurrency = 4;
  MachineRollout engine(world, slot);
  std::vector<actors::Span> spans;
  actors::Outbox out([&](actors::OutgoingMessage m) {
    const auto message = actors::IncomingMessage::from(std::move(m));
    if (message.is<actors::Activity>())
      spans = message.decode<actors::Activity>().value().spans;
  });
  const actors::CountedGenerate work{LeaseId(1), GroupId(1), {{ResponseId(1), Tokens(0)}}};
  ASSERT_TRUE(engine.on_message(
      actors::IncomingMessage::from(actors::outgoing_value(actors::CountedGenerate(work))), out));
  while (const auto task = engine.next()) {
    world.clock.set(world.clock.now() + from_seconds(task->seconds));
    if (task->done)
      task->done(out);
  }
  const Time called = world.clock.now();
  ASSERT_EQ(engine.wakes(), called + std::chrono::milliseconds(50));
  world.clock.set(called + std::chrono::milliseconds(20));
  engine.flush(out);
  ASSERT_FALSE(spans.empty());
  EXPECT_EQ(spans.back().state, actors::CardState::WaitTools);
  EXPECT_EQ(spans.back().begin, called);
  EXPECT_EQ(spans.back().end, world.clock.now());
}

}  // namespace
}  // namespace temper::study
