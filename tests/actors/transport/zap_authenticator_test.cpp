// Unauthenticated peers of an encrypted socket: no key, a foreign key, a replayed recording, or a
// flood of connections. None gets a message through, each is counted, and they use bounded
// resources.
#include "actors/transport/socket.hpp"
#include "core/file_descriptor.hpp"
#include "core/temporary_folder.hpp"
#include "tests/actors/transport/defaults.hpp"
#include "tests/support/transport.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <thread>

namespace temper::actors {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::receive;

sockaddr_in address_of(const std::string& endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

FileDescriptor connect_raw(const std::string& endpoint) {
  FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = address_of(endpoint);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

/// Returns true once the peer has closed the connection; discards what it sent before.
bool is_closed(const FileDescriptor& fd) {
  std::array<char, 256> bytes;
  ssize_t n = 0;
  while ((n = ::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0) {
  }
  return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

class ZapAuthenticatorTest : public testing::Test {
 protected:
  ZapAuthenticatorTest()
      : router_(RouterSocket::bind("tcp://127.0.0.1:0", config(), kNoLog, key_).value()) {}

  static TransportConfig config() {
    TransportConfig config;
    config.handshake = 500ms;
    return config;
  }
  /// Credentials as a worker gets them.
  Credentials credentials() const {
    return {.secret = "", .orchestrator_key = key_.open, .own = KeyPair::create()};
  }
  DealerSocket connect(const Credentials& with) {
    return DealerSocket::connect(router_.endpoint(), kDefaults, kNoLog, with).value();
  }
  static void send(DealerSocket& dealer, std::string body) {
    EXPECT_TRUE(dealer.try_send("head", std::move(body)).value());
  }
  /// A new authenticated peer gets its message through.
  void expect_still_serving() {
    const Credentials good = credentials();
    router_.let_in(good.own.open, "worker");
    DealerSocket dealer = connect(good);
    send(dealer, "alive");
    const auto message = receive(router_);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->body, "alive");
    EXPECT_EQ(message->user, "worker");
  }
  void expect_refused(std::uint64_t at_least = 1) {
    EXPECT_TRUE(eventually(router_, [&] {
      EXPECT_FALSE(router_.try_receive());
      return router_.stats().refused >= at_least;
    }));
    EXPECT_EQ(router_.stats().received, 0U);
  }

  const KeyPair key_ = KeyPair::create();
  RouterSocket router_;
};

TEST_F(ZapAuthenticatorTest, AdmitsAWorkerWithAnIssuedKeyUnderItsName) {
  expect_still_serving();
  EXPECT_EQ(router_.stats().refused, 0U);
}

TEST_F(ZapAuthenticatorTest, RefusesAClientWithoutAKey) {
  DealerSocket unknown_peer = DealerSocket::connect(router_.endpoint(), kDefaults, kNoLog).value();
  send(unknown_peer, "hello");
  expect_refused();
  expect_still_serving();
}

TEST_F(ZapAuthenticatorTest, RefusesAnUnknownKey) {
  DealerSocket unknown_peer = connect(credentials());
  send(unknown_peer, "hello");
  expect_refused();
  expect_still_serving();
}

TEST_F(ZapAuthenticatorTest, RefusesAClientThatExpectsAnotherOrchestrator) {
  Credentials mixed = credentials();
  router_.let_in(mixed.own.open, "worker");
  mixed.orchestrator_key = KeyPair::create().open;
  DealerSocket unknown_peer = connect(mixed);
  send(unknown_peer, "hello");
  expect_refused();
}

TEST_F(ZapAuthenticatorTest, RefusesARevokedKey) {
  const Credentials old = credentials();
  router_.let_in(old.own.open, "worker");
  router_.keep_out(old.own.open);
  DealerSocket replaced = connect(old);
  send(replaced, "hello");
  expect_refused();
}

/// A proxy between a worker and the router that forwards bytes and records those of the worker.
class Eavesdropper {
 public:
  explicit Eavesdropper(const std::string& endpoint)
      : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any = address_of("tcp://127.0.0.1:0");
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&any), sizeof(any)), 0);
    EXPECT_EQ(::listen(listening_.get(), 1), 0);
    socklen_t size = sizeof(any);
    EXPECT_EQ(::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&any), &size), 0);
    endpoint_ = fmt::format("tcp://127.0.0.1:{}", ntohs(any.sin_port));
    thread_ = std::thread([this, endpoint] { relay(endpoint); });
  }
  ~Eavesdropper() { thread_.join(); }
  const std::string& endpoint() const { return endpoint_; }
  /// Blocks until one side has closed the connection.
  std::string recorded() {
    thread_.join();
    thread_ = std::thread([] {});
    return said_;
  }

 private:
  void relay(const std::string& endpoint) {
    const FileDescriptor worker(::accept(listening_.get(), nullptr, nullptr));
    const FileDescriptor router = connect_raw(endpoint);
    std::array<pollfd, 2> both{{{worker.get(), POLLIN, 0}, {router.get(), POLLIN, 0}}};
    std::array<char, 4096> bytes;
    for (;;) {
      ::poll(both.data(), both.size(), -1);
      for (std::size_t i = 0; i < both.size(); ++i) {
        if (both[i].revents == 0)
          continue;
        const ssize_t n = ::recv(both[i].fd, bytes.data(), bytes.size(), 0);
        if (n <= 0)
          return;
        const auto size = static_cast<std::size_t>(n);
        if (i == 0)
          said_.append(bytes.data(), size);
        EXPECT_EQ(::send(both[1 - i].fd, bytes.data(), size, MSG_NOSIGNAL), n);
      }
    }
  }
  FileDescriptor listening_;
  std::string endpoint_;
  std::string said_;
  std::thread thread_;
};

TEST_F(ZapAuthenticatorTest, RefusesAReplayedConversation) {
  const Credentials good = credentials();
  router_.let_in(good.own.open, "worker");
  std::string recorded;
  {
    Eavesdropper between(router_.endpoint());
    {
      DealerSocket worker =
          DealerSocket::connect(between.endpoint(), kDefaults, kNoLog, good).value();
      send(worker, "the trained batch");
      const auto message = receive(router_);
      ASSERT_TRUE(message);
      EXPECT_EQ(message->body, "the trained batch");
    }
    recorded = between.recorded();
  }
  ASSERT_GT(recorded.size(), 100U);
  EXPECT_EQ(recorded.find("the trained batch"), std::string::npos) << "it is encrypted";
  const FileDescriptor again = connect_raw(router_.endpoint());
  EXPECT_EQ(::send(again.get(), recorded.data(), recorded.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(recorded.size()));
  EXPECT_TRUE(eventually(router_, [&] {
    EXPECT_FALSE(router_.try_receive());
    return router_.stats().refused >= 1;
  }));
  EXPECT_EQ(router_.stats().received, 1U);
}

TEST_F(ZapAuthenticatorTest, ClosesTheOldestOfManySilentConnections) {
  std::vector<FileDescriptor> silent_peers;
  constexpr std::size_t kMany = 1000;
  for (std::size_t i = 0; i < kMany; ++i)
    silent_peers.push_back(connect_raw(router_.endpoint()));
  EXPECT_TRUE(eventually(router_, [&] { return is_closed(silent_peers.front()); }));
  expect_still_serving();
  EXPECT_TRUE(eventually(router_, [&] {
    return std::count_if(silent_peers.begin(), silent_peers.end(), is_closed) >= 900;
  }));
  EXPECT_GE(router_.stats().refused, 900U);
}

TEST_F(ZapAuthenticatorTest, AdmitsAsManyConnectionsAsAreExpectedForAKey) {
  const Credentials good = credentials();
  constexpr std::size_t kMany = 100;
  router_.let_in(good.own.open, "workers", kMany);
  std::vector<DealerSocket> workers;
  for (std::size_t i = 0; i < kMany; ++i) {
    workers.push_back(connect(good));
    send(workers.back(), "hello");
  }
  std::set<PeerId> peers;
  EXPECT_TRUE(eventually(router_, [&] {
    while (const auto message = router_.try_receive())
      peers.insert(message->peer);
    return peers.size() >= kMany;
  }));
  EXPECT_EQ(peers.size(), kMany) << "no worker had to reconnect";
  EXPECT_EQ(router_.stats().refused, 0U);
}

TEST_F(ZapAuthenticatorTest, KeepsAuthenticatedConnectionsUnderAFlood) {
  const Credentials good = credentials();
  router_.let_in(good.own.open, "worker");
  DealerSocket worker = connect(good);
  send(worker, "first");
  const PeerId peer = receive(router_).value().peer;
  std::vector<FileDescriptor> silent_peers;
  for (int i = 0; i < 300; ++i)
    silent_peers.push_back(connect_raw(router_.endpoint()));
  EXPECT_TRUE(eventually(router_, [&] { return is_closed(silent_peers.front()); }));
  send(worker, "second");
  const auto message = receive(router_);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->peer, peer) << "the same connection";
}

TEST_F(ZapAuthenticatorTest, DisconnectsAnEndlessMessageBeforeTheHandshake) {
  const FileDescriptor unknown_peer = connect_raw(router_.endpoint());
  // A greeting of ZMTP 3.1 that asks for CURVE, then frames with more to follow.
  std::string bytes = "\xff";
  bytes += std::string(8, '\0') + "\x7f\x03";
  bytes += '\x01';
  bytes += "CURVE" + std::string(15 + 32, '\0');
  std::string frame = "\x03";
  frame += std::string("\x00\x00\x00\x00\x00\x10\x00\x00", 8) + std::string(1 << 20, 'x');
  std::size_t sent = 0;
  ASSERT_GT(::send(unknown_peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
  timeval patience{20, 0};
  ::setsockopt(unknown_peer.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  for (;;) {
    const ssize_t n = ::send(unknown_peer.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
    if (n <= 0)
      break;
    sent += static_cast<std::size_t>(n);
    ASSERT_LT(sent, std::size_t{64} << 20) << "an unauthenticated peer may send without limit";
  }
  expect_refused();
  expect_still_serving();
}

TEST(Credentials, ReadBackFromAPrivateFile) {
  const auto folder = TemporaryFolder::create().value();
  const auto path = folder.path() / "worker";
  const Credentials written{"s3cret", KeyPair::create().open, KeyPair::create()};
  ASSERT_TRUE(write_credentials(path, written));
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const auto read = read_credentials(path);
  ASSERT_TRUE(read) << read.error().context;
  EXPECT_EQ(read->secret, "s3cret");
  EXPECT_EQ(read->orchestrator_key, written.orchestrator_key);
  EXPECT_EQ(read->own.open, written.own.open);
  EXPECT_EQ(read->own.secret, written.own.secret);
  EXPECT_FALSE(write_credentials(path, written)) << "an existing file must not be overwritten";
}

TEST(Credentials, RejectsAFileThatOthersCanRead) {
  const auto folder = TemporaryFolder::create().value();
  const auto path = folder.path() / "worker";
  ASSERT_TRUE(write_credentials(path, {}));
  ::chmod(path.c_str(), 0640);
  const auto read = read_credentials(path);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().context.find("mode 0600"), std::string::npos) << read.error().context;
}

}  // namespace
}  // namespace temper::actors
