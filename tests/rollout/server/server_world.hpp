// An engine with a fake server, and the invariants of every response.
#pragma once

#include "core/random.hpp"
#include "rollout/server/engine.hpp"
#include "tests/support/fake_server.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <ranges>

namespace temper::test {

using actors::EngineKind;
using actors::FinishReason;
using rollout::Generation;

enum class Turns { No, Yes };

/// Settings of the engine for tests.
class ServerWorld {
 public:
  explicit ServerWorld(const actors::EngineConfig& config,
                       std::size_t compare_every = 1'000'000,
                       std::vector<std::int32_t> ends = {1},
                       Turns turns = Turns::No,
                       const std::optional<actors::LoraConfig>& lora = {})
      : ends_(std::move(ends)) {
    actors::ServerOptions options;
    options.log = folder_ / "server.log";
    options.config = config;
    options.name = "rollout-0";
    options.model = table_model();
    options.model.gguf = traits_of(config.kind).reads_gguf;
    options.model.shape.lora = lora;
    options.sampling.adapters = lora;
    options.takes_turns = turns == Turns::Yes;
    options.sampling.end_tokens = ends_;
    options.sampling.vocabulary = kTableTokens;
    options.connections = 64;
    options.control_deadline = std::chrono::seconds(5);
    options.probe_deadline = std::chrono::seconds(1);
    rollout::ServerEngineOptions engine;
    engine.sampling.max_new_tokens = Tokens(8);
    engine.concurrency = 32;
    engine.drain = std::chrono::milliseconds(200);
    engine.compare_every = compare_every;
    engine.attempts = 6;
    auto server = actors::Server::create(std::move(options), clock_, log_);
    const std::string base = Table(0).image();
    auto made = rollout::make_server_engine(
        std::move(server).value(), engine, std::as_bytes(std::span(base)));
    EXPECT_TRUE(made) << made.error().context;
    engine_ = std::move(made).value();
  }

  rollout::ServerEngine& engine() { return *engine_; }

  /// Weights of version v are the table of seed v.
  Status publish(std::uint64_t version, bool with_canary = true) {
    const std::string image = Table(version).image(with_canary);
    TEMPER_TRY_STATUS(engine_->stage(PolicyVersion(version), std::as_bytes(std::span(image))));
    return engine_->commit(PolicyVersion(version));
  }
  void add(std::uint64_t id, std::vector<std::int32_t> prefix = {}) {
    prefixes_[id] = prefix;
    engine_->add({ResponseId(id), kPrompt, std::move(prefix)});
  }
  void add_all(std::uint64_t count) {
    for (std::uint64_t id = 0; id < count; ++id)
      add(id);
  }
  /// Steps until the engine is idle.
  std::vector<Generation> finish() {
    std::vector<Generation> all;
    const Time deadline = clock_.now() + std::chrono::seconds(30);
    while (engine_->load() > 0) {
      EXPECT_LT(clock_.now(), deadline);
      if (clock_.now() >= deadline)
        break;
      auto step = engine_->step();
      EXPECT_TRUE(step) << step.error().context;
      if (!step)
        break;
      std::ranges::move(step->finished, std::back_inserter(all));
    }
    return all;
  }
  /// Kills the server that the engine started after 0 to 19 steps of each version. Returns all
  /// responses, including those finished after the last kill.
  std::vector<Generation> generate_through_kills(std::uint64_t kills) {
    Random random(5, "kills");
    std::vector<Generation> all;
    std::uint64_t next = 0;
    for (std::uint64_t kill = 1; kill <= kills; ++kill) {
      EXPECT_TRUE(publish(kill));
      for (int i = 0; i < kPerKill; ++i)
        add(next++);
      for (std::uint64_t steps = random.below(20); steps > 0; --steps) {
        auto step = engine_->step();
        EXPECT_TRUE(step);
        if (step)
          std::ranges::move(step->finished, std::back_inserter(all));
      }
      EXPECT_EQ(::kill(started_server(), SIGKILL), 0);
    }
    return all;
  }
  static constexpr int kPerKill = 5;  ///< Responses.

  /// Sends all queued requests, fewer than the window allows.
  void send_all() {
    auto step = engine_->step();
    ASSERT_TRUE(step) << step.error().context;
    ASSERT_TRUE(step->finished.empty());
  }

  /// Adds `count` responses, which the server holds after so many tokens.
  void hold(FakeServer& server, int count, int tokens) {
    server.tell(fmt::format(R"({{"hold_after": {}}})", tokens));
    add_all(static_cast<std::uint64_t>(count));
    send_all();
    server.await_begun(count);
  }
  /// Publishes version 2 while responses of version 1 run.
  void expect_a_segment_for_each_version(FakeServer& server) {
    hold(server, 10, 3);
    ASSERT_TRUE(publish(2));
    server.tell(R"({"hold_after": null})");
    const auto all = finish();
    expect_whole(all, 10);
    for (const Generation& g : all) {
      ASSERT_EQ(g.segments.size(), 2U);
      EXPECT_EQ(g.segments[0], (actors::Segment{PolicyVersion(1), Tokens(3)}));
      EXPECT_EQ(g.segments[1].version, PolicyVersion(2));
    }
  }

  /// Every log-prob must be that of the version of its segment.
  void expect_true(const Generation& g) {
    std::int32_t last = kPrompt.back();
    if (!prefixes_[g.id.value()].empty())
      last = prefixes_[g.id.value()].back();
    ASSERT_EQ(g.logprobs.size(), g.tokens.size());
    std::size_t at = 0;
    for (const actors::Segment& segment : g.segments) {
      const Table table(segment.version.value());
      for (std::int64_t i = 0; i < segment.tokens.count(); ++i, ++at) {
        EXPECT_NEAR(g.logprobs[at], table.logprob(last, g.tokens[at]), 1e-4)
            << "token " << at << " of response " << g.id.value() << ", version "
            << segment.version.value();
        last = g.tokens[at];
      }
    }
    EXPECT_EQ(at, g.tokens.size());
  }
  void expect_whole(const std::vector<Generation>& all, std::size_t count) {
    EXPECT_EQ(all.size(), count);
    for (const Generation& g : all) {
      expect_true(g);
      const bool ended = !g.tokens.empty() && std::ranges::count(ends_, g.tokens.back()) == 1;
      EXPECT_EQ(g.finish, ended ? FinishReason::End : FinishReason::Length);
    }
  }

  static inline const std::vector<std::int32_t> kPrompt{3, 4};

  /// The process of a server that the engine started, once it listens.
  pid_t started_server() const { return last_started().second; }
  /// A connection to a server that the engine started.
  void tell_started(const std::string& json) const {
    const auto url = actors::parse_url("http://127.0.0.1:" + std::to_string(last_started().first));
    actors::HttpClient client(url.value(), 1);
    ASSERT_TRUE(client.call({"POST", "/fake", json, std::chrono::seconds(10)}).good());
  }

 private:
  /// Port and process.
  std::pair<int, int> last_started() const {
    std::ifstream log(folder_ / "server.log");
    int port = 0, pid = 0;
    for (std::string line; std::getline(log, line);)
      std::sscanf(line.c_str(), "listening on %d as %d", &port, &pid);
    return {port, pid};
  }

  const std::vector<std::int32_t> ends_;
  const TemporaryFolder folder_;
  RealClock clock_;
  Log log_ = Log::discard();
  std::unique_ptr<rollout::ServerEngine> engine_;
  std::map<std::uint64_t, std::vector<std::int32_t>> prefixes_;
};

inline actors::EngineConfig config_of(EngineKind kind, const std::string& address) {
  actors::EngineConfig config;
  config.kind = kind;
  config.data = {address};
  config.patience = std::chrono::seconds(20);
  return config;
}

/// Runs each test with each kind that loads weights by routes.
class EveryServer : public testing::TestWithParam<EngineKind> {};

inline std::string server_name(const testing::TestParamInfo<EngineKind>& info) {
  return std::string(name_of(info.param));
}

}  // namespace temper::test
