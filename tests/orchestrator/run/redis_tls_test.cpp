// RedisConnection and RedisTensors through TLS, on a server of the test with certificates of the
// test's own. Skipped without redis-server or openssl.
#include "core/files.hpp"
#include "orchestrator/run/redis_tensors.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <sstream>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Makes the files of tests/support/certificates. False: there is no openssl.
bool make_certificates(const std::filesystem::path& folder) {
  if (std::system("openssl version >/dev/null 2>&1") != 0)  // NOLINT(concurrency-mt-unsafe)
    return false;
  const std::string command =
      fmt::format("'{}/tests/support/certificates' '{}'", TEMPER_SOURCE_DIR, folder.string());
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
  return true;
}

Error error_of(const RedisAddress& address) {
  const RealClock clock;
  RedisConnection connection(address, clock);
  const RedisCommand command{"EXISTS", "a"};
  const auto said = connection.ask({&command, 1});
  return said ? Error{} : said.error();
}

class RedisTls : public ::testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);  // as the orchestrator does
    if (!make_certificates(folder_.path()))
      GTEST_SKIP() << "needs openssl";
    server_.use_tls((folder_ / "server").string());
    if (!server_.start())
      GTEST_SKIP() << "needs redis-server";
  }

  std::string content(const std::string& file) const { return read_file(folder_ / file).value(); }
  /// Of the server, which has a certificate for this host.
  RedisAddress address(const std::string& host = "localhost") const {
    RedisAddress address = server_.address();
    address.host = host;
    address.tls = true;
    address.ca_certificates = certificates_in(content("ca.pem")).value();
    return address;
  }

  const RealClock clock_;
  test::RedisServer server_;
  const test::TemporaryFolder folder_;
};

TEST_F(RedisTls, AServerIsReachedByItsNameAndByItsAddress) {
  for (const char* host : {"localhost", "127.0.0.1"}) {
    RedisConnection connection(address(host), clock_);
    const std::vector<RedisCommand> commands{
        {"HSET", "a", "0", "x"}, {"HLEN", "a"}, {"UNLINK", "a"}, {"EXISTS", "a"}};
    EXPECT_EQ(connection.ask(commands).value(), (std::vector<std::int64_t>{1, 1, 1, 0}));
  }
}

TEST_F(RedisTls, CommandsAndAnswersOfManyRecordsArriveWhole) {
  std::vector<RedisCommand> commands;
  std::vector<std::int64_t> expected;
  for (int i = 0; i < 10'000; ++i) {
    commands.push_back({"HSET", "a", std::to_string(i / 2), std::string(100, 'x')});
    expected.push_back(i % 2 == 0 ? 1 : 0);
  }
  RedisConnection connection(address(), clock_);
  EXPECT_EQ(connection.ask(commands).value(), expected);
}

TEST_F(RedisTls, EnginesAreToldToUseItAndWhomToTrust) {
  RealClock clock;
  std::ostringstream said;
  const Log log = Log::to_stream(clock, said);
  const auto store = RedisTensors::create({{address()}, "run"}, log);
  ASSERT_TRUE(store) << store.error().context;
  EXPECT_TRUE((*store)->place().tls);
  EXPECT_EQ((*store)->place().ca_certificates, address().ca_certificates);
}

TEST_F(RedisTls, AServerThatWasRestartedIsReachedAgain) {
  RedisConnection connection(address(), clock_);
  const RedisCommand set{"HSET", "a", "0", "x"}, exists{"EXISTS", "a"};
  EXPECT_TRUE(connection.ask({&set, 1}));
  server_.kill();
  ASSERT_TRUE(server_.start());
  EXPECT_EQ(connection.ask({&exists, 1}).value(), std::vector<std::int64_t>{0});
}

TEST_F(RedisTls, AServerWithACertificateOfAnUnknownAuthorityIsRefused) {
  for (const std::string& trusted : {std::string(), content("unrelated.pem")}) {
    RedisAddress other = address();
    other.ca_certificates = trusted;
    const Error error = error_of(other);
    EXPECT_EQ(error.code, ErrorCode::InvalidInput);
    EXPECT_EQ(error.context,
              other.text() +
                  ": expected a valid certificate for localhost, found: unable to get "
                  "local issuer certificate");
  }
}

TEST_F(RedisTls, ACertificateForAnotherHostIsRefused) {
  test::RedisServer other;
  other.use_tls((folder_ / "other").string());
  ASSERT_TRUE(other.start());
  for (const auto& [host, why] : {std::pair("localhost", "hostname mismatch"),
                                  std::pair("127.0.0.1", "IP address mismatch")}) {
    RedisAddress named = address(host);
    named.port = other.address().port;
    const Error error = error_of(named);
    EXPECT_EQ(error.code, ErrorCode::InvalidInput);
    EXPECT_EQ(
        error.context,
        fmt::format("{}: expected a valid certificate for {}, found: {}", named.text(), host, why));
  }
}

TEST_F(RedisTls, AServerWithoutTlsIsNamed) {
  test::RedisServer plain;
  ASSERT_TRUE(plain.start());
  RedisAddress named = address();
  named.port = plain.address().port;
  const Error error = error_of(named);
  EXPECT_EQ(error.code, ErrorCode::Unavailable);
  EXPECT_TRUE(error.context.starts_with(named.text() + ": expected a server with TLS, found: "))
      << error.context;
}

TEST_F(RedisTls, AConfigurationThatCannotBeUsedIsNamedByItsKey) {
  ::setenv(kRedisPassword, server_.address().password.c_str(), 1);
  PipelineConfig config;
  config.payloads.store = TensorStoreKind::Redis;
  config.payloads.redis = address().text();
  config.payloads.redis_ca = (folder_ / "ca.pem").string();
  EXPECT_TRUE(open_redis_tensors(config, Log::discard()));
  for (const auto& [ca, why] :
       {std::pair("server.key", ": expected certificates in PEM, found none"),
        std::pair("none.pem", " does not exist")}) {
    const std::string file = (folder_ / ca).string();
    config.payloads.redis_ca = file;
    const auto said = open_redis_tensors(config, Log::discard());
    ASSERT_FALSE(said);
    EXPECT_EQ(said.error().context, "payloads.redis_ca: " + file + why);
  }
  config.payloads.redis_ca.clear();
  const auto said = open_redis_tensors(config, Log::discard());
  ASSERT_FALSE(said);
  EXPECT_TRUE(said.error().context.starts_with("payloads.redis: expected a Redis server that"))
      << said.error().context;
  EXPECT_NE(said.error().context.find("payloads.redis_ca: " + config.payloads.redis + ": "),
            std::string::npos)
      << said.error().context;
  ::unsetenv(kRedisPassword);
}

TEST_F(RedisTls, OnlyTheCertificatesOfAFileArePassedOn) {
  const std::string both = content("server.key") + content("ca.pem") + content("server.pem");
  const std::string found = certificates_in(both).value();
  EXPECT_EQ(found, content("ca.pem") + content("server.pem"));
  for (const std::string& text : {std::string(), content("server.key"), std::string("x")}) {
    const auto none = certificates_in(text);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().context, "expected certificates in PEM, found none");
  }
  std::string damaged = content("ca.pem");
  damaged[damaged.size() / 2] = '!';
  const auto said = certificates_in(content("server.pem") + damaged);
  ASSERT_FALSE(said);
  EXPECT_TRUE(
      said.error().context.starts_with("expected certificates in PEM, found a damaged one: "))
      << said.error().context;
}

/// The kernel accepts connections, and nobody answers.
class SilentServer {
 public:
  SilentServer() {
    sockaddr_in silent{};
    silent.sin_family = AF_INET;
    silent.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(silent);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&silent), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 1), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&silent), &size), 0);
    port_ = ntohs(silent.sin_port);
  }
  RedisAddress address(bool tls) const { return {"127.0.0.1", port_, "", tls, ""}; }

 private:
  const FileDescriptor socket_{::socket(AF_INET, SOCK_STREAM, 0)};
  std::uint16_t port_ = 0;
};

TEST(RedisConnection, DoesNotWaitForAServerThatSaysNothingInTheHandshake) {
  const SilentServer server;
  const Error error = error_of(server.address(true));
  EXPECT_EQ(error.code, ErrorCode::Unavailable);
  EXPECT_EQ(error.context,
            server.address(true).text() + ": expected a server with TLS, found: no answer");
}

TEST(RedisConnection, LeavesAServerAloneThatDidNotAnswerInTime) {
  for (const bool tls : {false, true}) {
    const SilentServer server;
    const ManualClock clock;
    RedisConnection connection(server.address(tls), clock);
    const RedisCommand command{"EXISTS", "a"};
    const std::string unasked = server.address(tls).text() + ": no answer";
    EXPECT_NE(connection.ask({&command, 1}).error().context, unasked);
    EXPECT_EQ(connection.ask({&command, 1}).error().context, unasked);
  }
}

}  // namespace
}  // namespace temper::orchestrator
