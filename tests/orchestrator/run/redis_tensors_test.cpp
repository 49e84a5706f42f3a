// RedisTensors, on a server of the test: what it finds, takes, removes and extends, and what it
// says of a server that is away or refuses. Skipped without redis-server.
#include "orchestrator/run/redis_tensors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <sstream>

namespace temper::orchestrator {
namespace {

constexpr const char* kPassword = "correct horse";

/// A port that nobody listens on.
std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

class RedisServer {
 public:
  RedisServer() = default;
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer() { kill(); }

  /// Without data. False: there is no redis-server.
  bool start() {
    std::array<int, 2> out{};
    EXPECT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::vector<std::string> words{"redis-server",
                                   "--port",
                                   std::to_string(port_),
                                   "--bind",
                                   "127.0.0.1",
                                   "--save",
                                   "",
                                   "--requirepass",
                                   kPassword};
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    const int error =
        ::posix_spawnp(&pid_, "redis-server", &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    std::string said;
    std::array<char, 4096> piece{};
    ssize_t n = 1;
    while (error == 0 && n > 0 && said.find("Ready to accept") == std::string::npos) {
      n = ::read(out[0], piece.data(), piece.size());
      said.append(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    }
    output_ = out[0];  // open, so that the server can write on
    return error == 0 && n > 0;
  }

  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      ::close(output_);
    }
    pid_ = 0;
  }

  RedisAddress address() const { return {"127.0.0.1", port_, kPassword}; }

 private:
  const std::uint16_t port_ = free_port();
  pid_t pid_ = 0;
  int output_ = -1;
};

class RedisTensorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!server_.start())
      GTEST_SKIP() << "needs redis-server";
    store_ = new_store();
  }

  std::unique_ptr<RedisTensors> new_store() {
    auto store = RedisTensors::create({server_.address(), "run", std::chrono::seconds(60)}, log_);
    EXPECT_TRUE(store) << store.error().context;
    return *std::move(store);
  }
  std::int64_t ask(const RedisCommand& command) const {
    RedisConnection connection(server_.address());
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
  RedisServer server_;
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

TEST_F(RedisTensorsTest, AServerThatDoesNotAdmitTheRunIsNamedWithoutThePassword) {
  for (const char* password : {"wrong secret", ""}) {
    RedisAddress address = server_.address();
    address.password = password;
    const auto refused = RedisTensors::create({address, "run"}, log_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
    EXPECT_TRUE(refused.error().context.starts_with(address.text())) << refused.error().context;
    EXPECT_EQ(refused.error().context.find("wrong secret"), std::string::npos);
  }
}

TEST_F(RedisTensorsTest, ACommandThatTheServerRefusesIsNamed) {
  ask({"ACL", "SETUSER", "default", "-hlen"});
  const auto refused = RedisTensors::create({server_.address(), "run"}, log_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
  EXPECT_NE(refused.error().context.find("HLEN: NOPERM"), std::string::npos)
      << refused.error().context;
}

TEST(RedisConnection, NamesAServerThatDoesNotAnswer) {
  RedisConnection nobody({"127.0.0.1", free_port(), ""});
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
