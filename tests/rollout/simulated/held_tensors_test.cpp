// Tensors of responses in the host memory of a simulated engine.
#include "tests/rollout/simulated/simulated_world.hpp"

namespace temper::rollout {
namespace {

actors::SimulationSettings engine_with_tensors() {
  actors::SimulationSettings s = small_engine();
  s.config.tensors = {.per_token = Bytes(1000), .per_response = Bytes(50)};
  return s;
}

actors::Usage tensor_usage(World& world, const std::vector<Scheduled>& messages) {
  world.run(messages);
  const auto activity = world.all<actors::Activity>();
  EXPECT_TRUE(!activity.empty() && activity.back().usage && activity.back().usage->tensors);
  return activity.back().usage.value_or(actors::Usage{});
}

std::int64_t written(const World& world) {
  std::int64_t bytes = 0;
  for (const auto& item : world.ended()) {
    if (item.finish == actors::FinishReason::End || item.finish == actors::FinishReason::Length)
      bytes += 1000 * (item.prompt + item.tokens).count() + 50;
  }
  return bytes;
}

TEST(HeldTensors, AreHeldUntilTheyAreReleased) {
  World world(engine_with_tensors());
  std::vector<Scheduled> messages = arriving(work(6, 8), 0, 10, 1);
  actors::CountedRelease trained{{}, actors::CountedRelease::After::Trained};
  actors::CountedRelease dropped{{}, actors::CountedRelease::After::Dropped};
  for (std::uint64_t r = 0; r < 16; ++r)  // groups 0 and 1
    (r < 8 ? trained : dropped).responses.emplace_back(r);
  messages.push_back(at(time_of(1e5), trained));
  messages.push_back(at(time_of(1e5), dropped));
  messages.push_back(at(time_of(1e5), dropped));  // They are gone: no effect.
  messages.push_back(at(time_of(1e5), actors::Stop{}));
  const actors::Usage usage = tensor_usage(world, messages);
  std::int64_t gone[2] = {0, 0};
  for (const auto& item : world.ended()) {
    if (item.response.value() < 16)
      gone[item.response.value() / 8] += 1000 * (item.prompt + item.tokens).count() + 50;
  }
  EXPECT_EQ(usage.tensors->stored.count(), written(world));
  EXPECT_EQ(usage.tensors->dropped.count(), gone[1]);
  EXPECT_EQ(usage.tensors->held.count(), written(world) - gone[0] - gone[1]);
  // All 48 responses ended, so the hosts of four dies held all of them at once.
  EXPECT_NEAR(
      static_cast<double>(usage.host.peak.count()), static_cast<double>(written(world)) / 4, 1);
}

TEST(HeldTensors, AContinuedResponseHasThoseOfAllItsTokens) {
  World world(engine_with_tensors());
  actors::CountedGenerate again{LeaseId(7), GroupId(0), {{ResponseId(0), Tokens(40)}}};
  const actors::Usage usage =
      tensor_usage(world, {at(Time{}, again), at(time_of(1e5), actors::Stop{})});
  ASSERT_EQ(world.ended().size(), 1U);
  EXPECT_EQ(usage.tensors->stored.count(), written(world) + 40 * 1000);
}

TEST(HeldTensors, CanceledResponsesLeaveNone) {
  World world(engine_with_tensors());
  const actors::Usage usage = tensor_usage(world,
                                           {at(Time{}, work(1, 1)[0]),
                                            at(time_of(1), actors::Cancel{{ResponseId(0)}}),
                                            at(time_of(1e5), actors::Stop{})});
  EXPECT_EQ(usage.tensors->stored.count(), written(world));
  EXPECT_EQ(usage.tensors->held.count(), written(world));
  EXPECT_GT(usage.host.peak.count(), 0) << "those of a running response are on the host";
}

TEST(HeldTensors, WithoutAnyNothingIsReported) {
  World world(small_engine());
  world.run({at(Time{}, work(1, 8)[0]), at(time_of(1e5), actors::Stop{})});
  EXPECT_FALSE(world.all<actors::Activity>().back().usage->tensors);
}

}  // namespace
}  // namespace temper::rollout
