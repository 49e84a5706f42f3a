// Servers on time-shared cards: they sleep, and wake with a new version.
#include "tests/rollout/server/server_world.hpp"

namespace temper::test {
namespace {

class ServerThatTakesTurns : public EveryServer {
 protected:
  std::vector<std::string> memory() { return fake_.state()["memory"]; }
  void tell_faults(const std::string& list) { fake_.tell(R"({"faults": {)" + list + "}}"); }
  Status rollout_turn(std::uint64_t version) {
    TEMPER_TRY_STATUS(world_.publish(version));
    return world_.engine().allocate_kv();
  }
  Status training_turn() {
    TEMPER_TRY_STATUS(world_.engine().free_kv());
    return world_.engine().free_weights();
  }
  void expect_five_of(std::uint64_t version) {
    world_.add_all(5);
    const auto all = world_.finish();
    world_.expect_whole(all, 5);
    for (const Generation& g : all)
      EXPECT_EQ(g.segments.at(0).version, PolicyVersion(version));
    EXPECT_EQ(fake_.state()["begun_without_memory"], 0);
  }

  const std::vector<std::string> kAll{"kv_cache", "weights"};
  FakeServer fake_{GetParam()};
  ServerWorld world_{config_of(GetParam(), fake_.address()), 1'000'000, {1}, Turns::Yes};
};
INSTANTIATE_TEST_SUITE_P(Servers,
                         ServerThatTakesTurns,
                         testing::ValuesIn(servers_with_routes()),
                         server_name);

TEST_P(ServerThatTakesTurns, StartsWithoutMemory) {
  EXPECT_TRUE(memory().empty());
}

TEST_P(ServerThatTakesTurns, GeneratesWithTheVersionItWokeWith) {
  for (std::uint64_t version = 1; version <= 3; ++version) {
    ASSERT_TRUE(rollout_turn(version));
    EXPECT_EQ(memory(), kAll);
    expect_five_of(version);
    ASSERT_TRUE(training_turn());
    EXPECT_TRUE(memory().empty());
  }
}

TEST_P(ServerThatTakesTurns, CommitsAVersionDuringItsTurn) {
  ASSERT_TRUE(rollout_turn(1));
  ASSERT_TRUE(world_.publish(2));
  expect_five_of(2);
}

TEST_P(ServerThatTakesTurns, AllocatesItsCacheAfterItsWeights) {
  ASSERT_TRUE(world_.publish(1));
  EXPECT_EQ(memory(), std::vector<std::string>{"weights"});
}

TEST_P(ServerThatTakesTurns, DetectsWeightsLostDuringSleepBeforeItGenerates) {
  ASSERT_TRUE(rollout_turn(1));
  ASSERT_TRUE(training_turn());
  tell_faults(R"("not_applied": -1)");
  const Status woken = rollout_turn(2);
  ASSERT_FALSE(woken);
  EXPECT_NE(woken.error().context.find("not the trained weights"), std::string::npos);
  EXPECT_EQ(fake_.state()["begun"], 0);
}

TEST_P(ServerThatTakesTurns, RetriesALoadThatFailsOnceDuringSleep) {
  tell_faults(R"("load_fails": 1)");
  ASSERT_TRUE(rollout_turn(1));
  expect_five_of(1);
}

TEST_P(ServerThatTakesTurns, GetsItsTurnAfterDyingAsleep) {
  ASSERT_TRUE(rollout_turn(1));
  ASSERT_TRUE(training_turn());
  fake_.kill();
  fake_.start_again();
  ASSERT_TRUE(rollout_turn(2));
  expect_five_of(2);
  EXPECT_EQ(world_.engine().waste().outages, 1U);
}

TEST_P(ServerThatTakesTurns, ReportsAFailedWakeUp) {
  tell_faults(R"("wake_fails": 1)");
  const Status woken = rollout_turn(1);
  ASSERT_FALSE(woken);
  EXPECT_NE(woken.error().context.find("cannot wake"), std::string::npos);
}

TEST_P(ServerThatTakesTurns, ReturnsAwakeAfterDyingInItsTurn) {
  ASSERT_TRUE(rollout_turn(1));
  world_.hold(fake_, 5, 2);
  fake_.kill();
  fake_.start_again();
  world_.expect_whole(world_.finish(), 5);
  EXPECT_EQ(memory(), kAll);
  ASSERT_TRUE(training_turn());
}

}  // namespace
}  // namespace temper::test
