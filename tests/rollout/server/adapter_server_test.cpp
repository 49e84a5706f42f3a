// Servers whose versions are adapters: the fakes of vLLM and SGLang, which have a table for each.
#include "tests/rollout/server/server_world.hpp"

namespace temper::test {
namespace {

const actors::LoraConfig kLora{.rank = 2, .alpha = 4, .targets = {"q_proj", "v_proj"}};

ServerWorld world_of(EngineKind kind, const std::string& address) {
  return ServerWorld(config_of(kind, address), 1'000'000, {1}, Turns::No, kLora);
}

class AdapterServer : public EveryServer {
 protected:
  /// The adapters that the server has, by version.
  std::vector<std::string> adapters() {
    std::vector<std::string> versions;
    const nlohmann::json labels = fake_.state()["adapters"];
    for (const auto& label : labels.get<std::vector<std::string>>())
      versions.push_back(label.substr(0, label.find('-')));
    return versions;
  }
  std::int64_t calls(const std::string& route) {
    const nlohmann::json all = fake_.state()["calls"];
    return std::ranges::count_if(
        all, [&](const nlohmann::json& call) { return call.get<std::string>().ends_with(route); });
  }

  FakeServer fake_{GetParam(), {"--enable-lora", "--max-lora-rank", "2"}};
  ServerWorld world_ = world_of(GetParam(), fake_.address());
};
INSTANTIATE_TEST_SUITE_P(Servers,
                         AdapterServer,
                         testing::Values(EngineKind::Vllm, EngineKind::Sglang),
                         server_name);

TEST_P(AdapterServer, TakesFiftyVersionsWhileItServes) {
  for (std::uint64_t version = 1; version <= 50; ++version) {
    ASSERT_TRUE(world_.publish(version));
    for (std::uint64_t id = 4 * version; id < 4 * version + 4; ++id)
      world_.add(id);
    const auto all = world_.finish();
    world_.expect_whole(all, 4);
    for (const Generation& g : all) {
      ASSERT_EQ(g.segments.size(), 1U);
      EXPECT_EQ(g.segments[0].version, PolicyVersion(version));
    }
  }
  EXPECT_EQ(calls("/load_lora_adapter"), 50);
  EXPECT_EQ(calls("/collective_rpc") + calls("/update_weights_from_disk"), 0);
  EXPECT_EQ(adapters(), (std::vector<std::string>{"v50"}));
}

TEST_P(AdapterServer, ContinuesAResponseUnderTheNextAdapter) {
  ASSERT_TRUE(world_.publish(1));
  world_.expect_a_segment_for_each_version(fake_);
}

/// The server has the name of the version already when it is loaded again.
TEST_P(AdapterServer, LoadsAnAdapterAgainThatItDidNotApply) {
  std::uint64_t version = 0;
  for (const char* const fault : {"not_applied", "half_applied", "load_fails"}) {
    ASSERT_TRUE(world_.publish(++version));
    fake_.tell(fmt::format(R"({{"faults": {{"{}": 1}}}})", fault));
    ASSERT_TRUE(world_.publish(++version)) << fault;
    world_.add(version);
    world_.expect_whole(world_.finish(), 1);
  }
  EXPECT_EQ(calls("/load_lora_adapter"), 9);
  EXPECT_EQ(adapters(), (std::vector<std::string>{"v6"}));
}

TEST_P(AdapterServer, LoadsItsAdapterAgainAfterARestart) {
  ASSERT_TRUE(world_.publish(1));
  world_.hold(fake_, 5, 2);
  fake_.kill();
  fake_.start_again();
  world_.expect_whole(world_.finish(), 5);
  EXPECT_EQ(adapters(), (std::vector<std::string>{"v1"}));
}

/// SGLang lists the routes of adapters whatever its flags, and shows its flags.
TEST(AdapterServers, WithoutTheFlagsAreRefusedAtTheStart) {
  const auto refusal = [](const FakeServer::Arguments& arguments) {
    const FakeServer fake(EngineKind::Sglang, arguments);
    const RealClock clock;
    const Log log = Log::discard();
    const TemporaryFolder folder;
    actors::ServerOptions options;
    options.log = folder / "server.log";
    options.config = config_of(EngineKind::Sglang, fake.address());
    options.model = table_model();
    options.model.shape.lora = kLora;
    options.sampling.adapters = kLora;
    options.sampling.vocabulary = kTableTokens;
    auto server = actors::Server::create(options, clock, log);
    const std::string base = Table(0).image();
    const auto engine =
        rollout::make_server_engine(std::move(server).value(), {}, std::as_bytes(std::span(base)));
    return engine ? std::string("accepted") : engine.error().context;
  };
  EXPECT_EQ(refusal({"--enable-lora", "--max-lora-rank", "2"}), "accepted");
  EXPECT_NE(refusal({}).find("no --enable-lora, which does not fit model.lora; start it with "
                             "--enable-lora --max-lora-rank 2 --lora-target-modules q_proj v_proj"),
            std::string::npos);
  EXPECT_NE(refusal({"--enable-lora", "--max-lora-rank", "1"}).find("--max-lora-rank 1"),
            std::string::npos);
}

}  // namespace
}  // namespace temper::test
