// RedisTensors, on a server of the test: what it finds, takes, removes and extends, and what it
// says of a server that is away or refuses. Skipped without redis-server.
#include "orchestrator/run/redis_tensors.hpp"

#include "core/hash.hpp"
#include "tests/support/redis_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>

namespace temper::orchestrator {
namespace {

class RedisTensorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!server_.start())
      GTEST_SKIP() << "needs redis-server";
    store_ = new_store();
  }

  std::unique_ptr<RedisTensors> new_store() {
    auto store = RedisTensors::create({{server_.address()}, "run", std::chrono::seconds(60)}, log_);
    EXPECT_TRUE(store) << store.error().context;
    return *std::move(store);
  }
  std::int64_t ask(const RedisCommand& command) const {
    RedisConnection connection(server_.address(), clock_);
    return connection.ask({&command, 1}).value().front();
  }
  /// A tensor of so many bytes, all chunks of which an engine has written.
  actors::Tensor written(const std::string& name, std::uint64_t bytes = 24) const {
    const std::string key = store_->place().prefix + name;
    for (std::uint64_t i = 0;
         i < std::max<std::uint64_t>(1, (bytes + kTensorChunk - 1) / kTensorChunk);
         ++i)
      ask({"HSET", key, std::to_string(i), "x"});
    ask({"EXPIRE", key, "100"});
    return {"routes", "uint8", {static_cast<std::uint32_t>(bytes)}, bytes, 7, name};
  }
  Status check(const actors::Tensor& t) const {
    std::set<std::string> named;
    return store_->check({&t, 1}, named);
  }
  bool finds(const actors::Tensor& t) const { return store_->find({&t, 1}).front(); }
  std::vector<actors::Tensor> taken(const std::string& name) const {
    std::vector<actors::Tensor> tensors{written(name)};
    store_->take(tensors);
    return tensors;
  }

  RealClock clock_;
  std::ostringstream said_;
  Log log_ = Log::to_stream(clock_, said_);
  test::RedisServer server_;
  std::unique_ptr<RedisTensors> store_;
};

TEST_F(RedisTensorsTest, ATensorIsThereWithAllItsChunks) {
  EXPECT_TRUE(finds(written("a", 0)));
  EXPECT_TRUE(finds(written("b", kTensorChunk)));
  actors::Tensor t = written("c", kTensorChunk + 1);
  EXPECT_TRUE(finds(t));
  ask({"HDEL", store_->place().prefix + "c", "1"});
  EXPECT_FALSE(finds(t));
  t.file = "nowhere";
  EXPECT_FALSE(finds(t));
}

TEST_F(RedisTensorsTest, AKeyThatWasTakenIsThereUntilItIsRemoved) {
  const std::vector<actors::Tensor> tensors = taken("a");
  EXPECT_EQ(tensors[0].file, store_->place().prefix + "a");
  EXPECT_TRUE(store_->has(tensors));
  store_->remove(tensors);
  EXPECT_FALSE(store_->has(tensors));
  EXPECT_EQ(ask({"DBSIZE"}), 0);
}

TEST_F(RedisTensorsTest, NoEngineCanNameAKeyThatWasTaken) {
  const actors::Tensor t = written("a");
  EXPECT_TRUE(check(t));
  const auto tensors = taken("a");
  EXPECT_FALSE(check(t));
  EXPECT_FALSE(check(tensors[0])) << "nor by its whole name";
  store_->refuse({&t, 1});
  EXPECT_TRUE(store_->has(tensors));
}

TEST_F(RedisTensorsTest, WhatIsRefusedIsRemoved) {
  const actors::Tensor t = written("a");
  store_->refuse({&t, 1});
  EXPECT_EQ(ask({"DBSIZE"}), 0);
}

TEST_F(RedisTensorsTest, OnlyItsOwnKeysAreRemoved) {
  ask({"HSET", "someone", "0", "x"});
  actors::Tensor t = written("a");
  t.file = "someone";
  store_->refuse({&t, 1});
  t.file = "temper:run:0:a";  // as a checkpoint of another process names it
  ask({"HSET", t.file, "0", "x"});
  EXPECT_FALSE(store_->has({&t, 1}));
  store_->remove({&t, 1});
  EXPECT_EQ(ask({"EXISTS", "someone", t.file}), 2);
}

TEST_F(RedisTensorsTest, WhatNoResponseNamesIsRemoved) {
  const auto kept = taken("a"), other = taken("b");
  store_->keep_only(kept);
  EXPECT_TRUE(store_->has(kept));
  EXPECT_FALSE(store_->has(other));
  EXPECT_EQ(ask({"DBSIZE"}), 1);
}

TEST_F(RedisTensorsTest, LeasesAreExtendedWhenItIsTime) {
  const auto tensors = taken("a");
  store_->refresh(Time{});
  EXPECT_GT(ask({"TTL", tensors[0].file}), 100);
  ask({"EXPIRE", tensors[0].file, "100"});
  store_->refresh(Time(std::chrono::minutes(1)));
  EXPECT_LE(ask({"TTL", tensors[0].file}), 100) << "not yet";
  store_->refresh(Time(std::chrono::minutes(5)));
  EXPECT_GT(ask({"TTL", tensors[0].file}), 100);
}

TEST_F(RedisTensorsTest, TwoRunsNeverMeet) {
  EXPECT_NE(new_store()->place().prefix, store_->place().prefix);
}

TEST_F(RedisTensorsTest, TheKeysEndWithTheirStore) {
  taken("a");
  store_.reset();
  EXPECT_EQ(ask({"DBSIZE"}), 0);
}

TEST_F(RedisTensorsTest, AServerThatWasRestartedHasLostEverything) {
  const auto tensors = taken("a");
  server_.kill();
  ASSERT_TRUE(server_.start());
  EXPECT_FALSE(store_->has(tensors));
  EXPECT_TRUE(said_.str().empty()) << said_.str();
}

TEST_F(RedisTensorsTest, AServerThatIsAwayIsBelievedToHaveThem) {
  const auto tensors = taken("a");
  server_.kill();
  EXPECT_TRUE(store_->has(tensors)) << "their reader waits for it";
  EXPECT_TRUE(store_->has(tensors));
  const std::string said = said_.str();
  EXPECT_NE(said.find("the Redis server of tensors does not answer"), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << "once";
}

TEST_F(RedisTensorsTest, AServerThatWasAwayAndComesBackEmptyIsAskedAtOnce) {
  const auto tensors = taken("a");
  server_.kill();
  EXPECT_TRUE(store_->has(tensors));
  ASSERT_TRUE(server_.start());
  EXPECT_FALSE(store_->has(tensors));
}

/// The clock of a process that waits a second for its core before every instruction.
class SlowClock final : public Clock {
 public:
  Time now() const override { return now_ += std::chrono::seconds(1); }

 private:
  mutable Time now_{};
};

TEST_F(RedisTensorsTest, AServerThatRefusedASlowProcessIsAskedAtOnce) {
  const SlowClock clock;
  RedisConnection connection(server_.address(), clock);
  const RedisCommand command{"EXISTS", "a"};
  server_.kill();
  EXPECT_FALSE(connection.ask({&command, 1}));
  ASSERT_TRUE(server_.start());
  const auto answered = connection.ask({&command, 1});
  EXPECT_TRUE(answered) << answered.error().context;
}

TEST_F(RedisTensorsTest, AServerThatDoesNotAdmitTheRunIsNamedWithoutThePassword) {
  for (const char* password : {"wrong secret", ""}) {
    RedisAddress address = server_.address();
    address.password = password;
    const auto refused = RedisTensors::create({{address}, "run"}, log_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
    EXPECT_TRUE(refused.error().context.starts_with(address.text())) << refused.error().context;
    EXPECT_EQ(refused.error().context.find("wrong secret"), std::string::npos);
  }
}

TEST_F(RedisTensorsTest, ACommandThatTheServerRefusesIsNamed) {
  ask({"ACL", "SETUSER", "default", "-hlen"});
  const auto refused = RedisTensors::create({{server_.address()}, "run"}, log_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
  EXPECT_NE(refused.error().context.find("HLEN: NOPERM"), std::string::npos)
      << refused.error().context;
}

TEST_F(RedisTensorsTest, AServerWithTwoNamesIsRejected) {
  ::setenv("TEMPER_REDIS_PASSWORD", server_.address().password.c_str(), 1);
  const std::string port = std::to_string(server_.address().port);
  PipelineConfig config;
  config.payloads.store = TensorStoreKind::Redis;
  config.payloads.redis = "127.0.0.1:" + port;
  EXPECT_TRUE(open_redis_tensors(config, log_));
  config.payloads.redis += ",localhost:" + port;
  const auto rejected = open_redis_tensors(config, log_);
  ASSERT_FALSE(rejected);
  EXPECT_TRUE(rejected.error().context.starts_with(
      "payloads.redis: 127.0.0.1:" + port + " and localhost:" + port + " are the same server"))
      << rejected.error().context;
  EXPECT_EQ(ask({"DBSIZE"}), 0);
  ::unsetenv("TEMPER_REDIS_PASSWORD");
}

/// Two servers, and tensors that engines have written: half a hundred, so that both have some.
class TwoServersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!servers_[0].start() || !servers_[1].start())
      GTEST_SKIP() << "needs redis-server";
    auto store = RedisTensors::create({addresses(), "run", std::chrono::seconds(60)}, log_);
    ASSERT_TRUE(store) << store.error().context;
    store_ = *std::move(store);
    for (int i = 0; i < 50; ++i) {
      const std::string name = "t" + std::to_string(i), key = store_->place().prefix + name;
      ask(hash64(key) % 2, {"HSET", key, "0", "x"});
      tensors_.push_back({"routes", "uint8", {24}, 24, 7, name});
    }
    store_->take(tensors_);
  }

  std::vector<RedisAddress> addresses() const {
    return {servers_[0].address(), servers_[1].address()};
  }
  std::int64_t ask(std::size_t server, const RedisCommand& command) const {
    RedisConnection connection(servers_.at(server).address(), clock_);
    return connection.ask({&command, 1}).value().front();
  }
  std::int64_t found() {
    const std::vector<bool> all = store_->find(tensors_);
    return std::ranges::count(all, true);
  }

  RealClock clock_;
  std::ostringstream said_;
  Log log_ = Log::to_stream(clock_, said_);
  std::array<test::RedisServer, 2> servers_;
  std::unique_ptr<RedisTensors> store_;
  std::vector<actors::Tensor> tensors_;
};

TEST_F(TwoServersTest, AreDistinct) {
  const auto distinct = store_->check_distinct();
  EXPECT_TRUE(distinct) << distinct.error().context;
  EXPECT_EQ(ask(0, {"DBSIZE"}) + ask(1, {"DBSIZE"}), 50);
}

TEST_F(TwoServersTest, ShareTheTensors) {
  EXPECT_TRUE(store_->has(tensors_));
  const std::int64_t first = ask(0, {"DBSIZE"}), second = ask(1, {"DBSIZE"});
  EXPECT_EQ(first + second, 50);
  EXPECT_GT(first, 10);
  EXPECT_GT(second, 10);
  store_->refresh(Time{});
  EXPECT_GT(ask(hash64(tensors_[0].file) % 2, {"TTL", tensors_[0].file}), 0);
  store_->remove(tensors_);
  EXPECT_EQ(ask(0, {"DBSIZE"}) + ask(1, {"DBSIZE"}), 0);
}

TEST_F(TwoServersTest, LoseOnlyWhatTheLostOneHad) {
  const std::int64_t second = ask(1, {"DBSIZE"});
  servers_[0].kill();
  EXPECT_EQ(found(), 50) << "one that is away is believed to have its tensors";
  ASSERT_TRUE(servers_[0].start());
  EXPECT_EQ(found(), second) << "it came back empty";
  const std::string said = said_.str();
  EXPECT_NE(said.find(servers_[0].address().text()), std::string::npos) << said;
  EXPECT_EQ(said.find(servers_[1].address().text()), std::string::npos) << said;
}

TEST_F(TwoServersTest, AreBothThereBeforeARunBegins) {
  servers_[1].kill();
  const auto refused = RedisTensors::create({addresses(), "run"}, log_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context, servers_[1].address().text() + ": Connection refused");
}

TEST(RedisConnection, NamesAServerThatDoesNotAnswer) {
  const RealClock clock;
  RedisConnection nobody({"127.0.0.1", test::free_port(), ""}, clock);
  const RedisCommand command{"EXISTS", "a"};
  const auto said = nobody.ask({&command, 1});
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, ErrorCode::Unavailable);
  EXPECT_EQ(said.error().context, nobody.address().text() + ": Connection refused");
}

TEST(RedisConnection, PutsIpv6AddressesInBrackets) {
  EXPECT_EQ((RedisAddress{"::1", 6379, ""}).text(), "[::1]:6379");
}

}  // namespace
}  // namespace temper::orchestrator
