#include "tests/rollout/server/server_world.hpp"

namespace temper::test {
namespace {

/// An engine at version 1 with a fake server of each kind.
class ServerEngineOver : public EveryServer {
 protected:
  ServerEngineOver() { EXPECT_TRUE(world_.publish(1)); }

  FakeServer fake_{GetParam()};
  ServerWorld world_{config_of(GetParam(), fake_.address())};
};
INSTANTIATE_TEST_SUITE_P(Servers,
                         ServerEngineOver,
                         testing::ValuesIn(servers_with_routes()),
                         server_name);

TEST_P(ServerEngineOver, LabelsTokensWithTheCommittedVersion) {
  world_.add_all(50);
  const auto all = world_.finish();
  world_.expect_whole(all, 50);
  for (const Generation& g : all) {
    ASSERT_EQ(g.segments.size(), 1U);
    EXPECT_EQ(g.segments[0].version, PolicyVersion(1));
  }
  EXPECT_EQ(world_.engine().waste().sampled_again, 0U);
}

TEST_P(ServerEngineOver, ContinuesWithASegmentForEachVersion) {
  world_.expect_a_segment_for_each_version(fake_);
}

TEST_P(ServerEngineOver, ReturnsWithdrawnResponsesWithTheirTokens) {
  world_.hold(fake_, 4, 2);
  const std::vector<ResponseId> leaving{ResponseId(1), ResponseId(2)};
  const auto back = world_.engine().withdraw(leaving);
  ASSERT_EQ(back.size(), 2U);
  for (const Generation& g : back) {
    world_.expect_true(g);
    EXPECT_EQ(g.finish, FinishReason::Interrupted);
    EXPECT_EQ(g.tokens.size(), 2U);
  }
  EXPECT_EQ(world_.engine().load(), 2U);
}

TEST_P(ServerEngineOver, DropsCanceledResponses) {
  fake_.tell(R"({"hold_after": 2})");
  world_.add_all(3);
  world_.send_all();
  const std::vector<ResponseId> gone{ResponseId(0), ResponseId(2)};
  world_.engine().cancel(gone);
  fake_.tell(R"({"hold_after": null})");
  const auto rest = world_.finish();
  world_.expect_whole(rest, 1);
  EXPECT_EQ(rest.at(0).id, ResponseId(1));
}

TEST_P(ServerEngineOver, ContinuesFromAPrefixThatCountsTowardsTheLength) {
  world_.add(5, {6, 7, 8});
  world_.add(6, {6, 7, 8, 9, 10, 11, 2, 3});  // The longest allowed response.
  const auto all = world_.finish();
  ASSERT_EQ(all.size(), 2U);
  for (const Generation& g : all) {
    world_.expect_true(g);
    EXPECT_LE(g.tokens.size(), g.id == ResponseId(5) ? 5U : 0U);
  }
}

TEST_P(ServerEngineOver, AbortsRequestsOfAPreviousEngine) {
  world_.hold(fake_, 3, 2);
  ServerWorld next(config_of(GetParam(), fake_.address()));
  EXPECT_EQ(fake_.state()["running"], 0);
}

TEST_P(ServerEngineOver, AcceptsWeightsWithoutACanaryByTheirLabel) {
  ASSERT_TRUE(world_.publish(2, /*with_canary=*/false));
  world_.add_all(5);
  world_.expect_whole(world_.finish(), 5);
}

/// With the fake's own end token alone, 5 would be followed by others.
TEST_P(ServerEngineOver, EndsAResponseAtAnyEndToken) {
  ServerWorld world(config_of(GetParam(), fake_.address()), 1'000'000, {1, 5});
  ASSERT_TRUE(world.publish(2));
  world.add_all(50);
  const auto all = world.finish();
  world.expect_whole(all, 50);
  std::size_t first = 0, second = 0;
  for (const Generation& g : all) {
    const auto ended = std::ranges::count_if(g.tokens, [](auto t) { return t == 1 || t == 5; });
    EXPECT_EQ(ended, g.finish == FinishReason::End ? 1 : 0);
    first += g.tokens.back() == 1 ? 1 : 0;
    second += g.tokens.back() == 5 ? 1 : 0;
  }
  EXPECT_GT(first, 0U);
  EXPECT_GT(second, 0U);
  EXPECT_EQ(world.engine().waste().sampled_again, 0U);
}

TEST_P(ServerEngineOver, DoesNotWriteInitialWeightsForAnExternalServer) {
  const TemporaryFolder folder;
  actors::EngineConfig config = config_of(GetParam(), fake_.address());
  config.folder = folder.path();
  const ServerWorld world(config);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ServerEngineAlone, WaitsForAFileThatNamesItsServer) {
  const TemporaryFolder folder;
  FakeServer fake(EngineKind::Vllm);
  std::ofstream(folder / "servers") << "# the servers\n" << fake.address() << "\n";
  ServerWorld world(config_of(EngineKind::Vllm, "file:" + (folder / "servers").string()));
  ASSERT_TRUE(world.publish(1));
  world.add_all(3);
  world.expect_whole(world.finish(), 3);
}

TEST(ServerEngineAlone, ReportsWhyAServerDidNotStart) {
  RealClock clock;
  const Log log = Log::discard();
  actors::ServerOptions options;
  options.config = config_of(EngineKind::Vllm, "file:/nowhere/servers");
  options.config.patience = std::chrono::milliseconds(300);
  options.model = table_model();
  auto server = actors::Server::create(options, clock, log);
  ASSERT_TRUE(server);
  const auto engine = rollout::make_server_engine(*std::move(server), {}, {});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::Timeout);
  EXPECT_NE(engine.error().context.find("/nowhere/servers"), std::string::npos);
}

TEST(ServerEngineAlone, StartsItsServerAndKeepsItsOutput) {
  const TemporaryFolder folder;
  actors::EngineConfig config = config_of(EngineKind::Sglang, "");
  config.data.clear();
  config.folder = folder.path();
  config.start = fake_server_command(EngineKind::Sglang, "");
  ServerWorld world(config);
  ASSERT_TRUE(world.publish(1));
  world.add_all(5);
  world.expect_whole(world.finish(), 5);
  EXPECT_GT(world.started_server(), 0);
}

}  // namespace
}  // namespace temper::test
