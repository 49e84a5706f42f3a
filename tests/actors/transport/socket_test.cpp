#include "actors/transport/socket.hpp"

#include "core/random.hpp"
#include "tests/actors/transport/defaults.hpp"
#include "tests/support/transport.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <sstream>

namespace temper::actors {
namespace {

using test::eventually;
using test::receive;
namespace fs = std::filesystem;

RouterSocket bind(const std::string& where, const TransportConfig& config = kDefaults) {
  auto router = RouterSocket::bind(where, config, kNoLog);
  EXPECT_TRUE(router) << router.error().context;
  return *std::move(router);
}

DealerSocket connect(const RouterSocket& router) {
  auto dealer = DealerSocket::connect(router.endpoint(), kDefaults, kNoLog);
  EXPECT_TRUE(dealer) << dealer.error().context;
  return *std::move(dealer);
}

void send(DealerSocket& dealer, std::string_view head, std::string body) {
  const auto sent = dealer.try_send(head, body);
  ASSERT_TRUE(sent) << sent.error().context;
  ASSERT_TRUE(*sent) << "queue full";
}

/// The next message for the dealer; empty after a timeout.
std::optional<Received> receive(DealerSocket& dealer) {
  const RealClock clock;
  while (clock.now() < Time(test::kPatience)) {
    if (auto message = dealer.try_receive())
      return message;
    EXPECT_TRUE(dealer.wait(DealerSocket::Wait::Readable, -1, test::kPatience));
  }
  return std::nullopt;
}

/// Checks that a new, well-behaved peer gets its message through.
void expect_still_serving(RouterSocket& router) {
  DealerSocket dealer = connect(router);
  send(dealer, "alive", "yes");
  const auto message = receive(router);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->head, "alive");
}

class SocketTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports,
                         SocketTest,
                         testing::Values("ipc", "tcp://127.0.0.1:0"),
                         [](const auto& p) { return std::string(p.param).substr(0, 3); });

TEST_P(SocketTest, CarriesMessagesInBothDirections) {
  RouterSocket router = bind(GetParam());
  DealerSocket dealer = connect(router);
  send(dealer, "head", "question");
  const auto question = receive(router);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->head, "head");
  EXPECT_EQ(question->body, "question");
  ASSERT_TRUE(router.send(question->peer, "other head", std::string("answer")));
  const auto answer = receive(dealer);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->head, "other head");
  EXPECT_EQ(answer->body, "answer");
}

TEST_P(SocketTest, KeepsBodiesOfAnySizeUnchanged) {
  RouterSocket router = bind(GetParam());
  DealerSocket dealer = connect(router);
  for (const std::size_t size : {1U, 4095U, 4096U, 1U << 20, 1U << 22}) {
    std::string body(size, 'x');
    body.back() = 'y';
    send(dealer, "head", body);
    const auto message = receive(router);
    ASSERT_TRUE(message);
    EXPECT_TRUE(message->body == body) << size;
    ASSERT_TRUE(router.send(message->peer, "head", body));
    const auto back = receive(dealer);
    ASSERT_TRUE(back);
    EXPECT_TRUE(back->body == body) << size;
  }
}

TEST_P(SocketTest, AReceivedMessageOutlivesItsSocket) {
  std::optional<Received> message;
  {
    RouterSocket router = bind(GetParam());
    DealerSocket dealer = connect(router);
    send(dealer, "head", std::string(100'000, 'z'));
    message = receive(router);
  }
  ASSERT_TRUE(message);
  EXPECT_EQ(message->body, std::string(100'000, 'z'));
}

TEST_P(SocketTest, ReportsADisconnectedPeer) {
  RouterSocket router = bind(GetParam());
  PeerId peer;
  {
    DealerSocket dealer = connect(router);
    send(dealer, "head", "body");
    peer = receive(router).value().peer;
  }
  Status sent;
  EXPECT_TRUE(eventually(router, [&] {
    sent = router.send(peer, "head", std::string("body"));
    return !sent;
  }));
  EXPECT_EQ(sent.error().code, ErrorCode::Unavailable);
  EXPECT_EQ(router.send(PeerId{"nobody"}, "head", std::string("body")).error().code,
            ErrorCode::Unavailable);
  expect_still_serving(router);
}

TEST_P(SocketTest, DoesNotBlockOnAPeerThatDoesNotRead) {
  TransportConfig small;
  small.queue = 16;
  RouterSocket router = bind(GetParam(), small);
  auto dealer = DealerSocket::connect(router.endpoint(), small, kNoLog).value();
  send(dealer, "head", "body");
  const PeerId peer = receive(router).value().peer;
  Status sent;
  for (int i = 0; i < 10'000 && sent; ++i)
    sent = router.send(peer, "head", std::string(1 << 20, 'x'));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::OutOfMemory);
  expect_still_serving(router);
}

/// A client that sends arbitrary frames.
class ForgingClient {
 public:
  explicit ForgingClient(const RouterSocket& router) : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.connect(router.endpoint());
  }
  void send(const std::vector<std::string>& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const bool last = i + 1 == frames.size();
      socket_.send(zmq::buffer(frames[i]), last ? zmq::send_flags::none : zmq::send_flags::sndmore);
    }
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

TEST_P(SocketTest, CountsAndDropsForgedFrames) {
  RouterSocket router = bind(GetParam());
  ForgingClient client(router);
  const std::vector<std::vector<std::string>> forged = {
      {"one"},
      {"one", "two", "three"},
      {"one", "two", "three", "four", "five"},
      {"", "body"},
      {"head", ""},
      {""},
      {std::string(257, 'h'), "body"},
  };
  for (const auto& frames : forged)
    client.send(frames);
  client.send({"head", "body"});
  const auto message = receive(router);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->head, "head");
  EXPECT_EQ(router.stats().dropped, forged.size());
  EXPECT_EQ(router.stats().received, 1U);
}

TEST_P(SocketTest, SurvivesRandomFrames) {
  RouterSocket router = bind(GetParam());
  ForgingClient client(router);
  Random rng(7, "test.forged-frames");
  std::size_t sent = 0;
  for (; sent < 3000; ++sent) {
    std::vector<std::string> frames(1 + rng.below(6));
    for (std::string& frame : frames) {
      frame.resize(rng.below(rng.below(50) == 0 ? 20'000 : 40));
      for (char& c : frame)
        c = static_cast<char>(rng.below(256));
    }
    client.send(frames);
  }
  EXPECT_TRUE(eventually(router, [&] {
    while (router.try_receive()) {
    }
    return router.stats().received + router.stats().dropped == sent;
  }));
  EXPECT_GT(router.stats().dropped, sent / 2);
  expect_still_serving(router);
}

TEST_P(SocketTest, RefusesAnOversizedFrame) {
  TransportConfig config;
  config.max_frame = Bytes(64 << 10);
  RouterSocket router = bind(GetParam(), config);
  ForgingClient giant(router);
  giant.send({"head", std::string(1 << 20, 'x')});
  expect_still_serving(router);
  EXPECT_EQ(router.stats().received, 1U);
}

TEST_P(SocketTest, DoesNotSendAFrameThatThePeerWouldRefuse) {
  RouterSocket router = bind(GetParam());
  DealerSocket dealer = connect(router);
  const Slice giant(std::string((4 << 20) + 1, 'x'));
  const auto sent = dealer.try_send("head", giant);
  ASSERT_FALSE(sent);
  EXPECT_EQ(
      sent.error().context,
      "cannot send a frame of 4194305 bytes: transport.max_frame is 4194304, and the peer would "
      "disconnect");
  EXPECT_FALSE(router.send(PeerId{"anyone"}, "head", giant));
  expect_still_serving(router);
}

TEST(Socket, LogsDroppedMessagesWithoutFloodingTheLog) {
  const ManualClock clock;
  std::ostringstream lines;
  const Log log = Log::to_stream(clock, lines);
  auto router = RouterSocket::bind("ipc", kDefaults, log).value();
  ForgingClient client(router);
  for (int i = 0; i < 1000; ++i)
    client.send({"only one frame"});
  EXPECT_TRUE(eventually(router, [&] {
    static_cast<void>(router.try_receive());
    return router.stats().dropped == 1000;
  }));
  const std::string text = lines.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10) << "1, 2, 4, ..., 512: " << text;
  EXPECT_NE(text.find("why=\"expected 2 frames, found 1\" dropped_so_far=512"), std::string::npos);
}

int connect_plain(const std::string& endpoint) {
  const auto port = std::stoi(endpoint.substr(endpoint.rfind(':') + 1));
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

TEST(Socket, SurvivesForeignProtocols) {
  RouterSocket router = bind("tcp://127.0.0.1:0");
  Random rng(8, "test.foreign-bytes");
  for (int i = 0; i < 50; ++i) {
    std::string bytes = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    if (i > 0) {
      bytes.resize(1 + rng.below(200));
      for (char& c : bytes)
        c = static_cast<char>(rng.below(256));
    }
    const int fd = connect_plain(router.endpoint());
    static_cast<void>(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    ::close(fd);
  }
  expect_still_serving(router);
}

/// Peers of ZMTP 1 and 2 send their identity without a handshake; one that closes early could abort
/// libzmq 4.3.4.
TEST(Socket, DisconnectsPeersOfOldProtocols) {
  RouterSocket router = bind("tcp://127.0.0.1:0");
  const std::string signature("\xFF\0\0\0\0\0\0\0\1\x7F", 10);
  for (const std::string& said : {std::string("\1\0", 2),  // 1: an empty identity
                                  signature + std::string("\1\5\0\0", 4)}) {  // 2: a dealer's
    const int fd = connect_plain(router.endpoint());
    const timeval patience{
        std::chrono::duration_cast<std::chrono::seconds>(test::kPatience).count(), 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ::send(fd, said.data(), said.size(), MSG_NOSIGNAL);
    std::array<char, 64> heard{};
    ssize_t n = 1;
    while (n > 0)
      n = ::recv(fd, heard.data(), heard.size(), 0);
    EXPECT_TRUE(n == 0 || errno == ECONNRESET) << "still connected";
    ::close(fd);
  }
  expect_still_serving(router);
}

TEST(Socket, KeepsTheIpcFolderPrivateAndRemovesIt) {
  fs::path folder;
  {
    const RouterSocket router = bind("ipc");
    folder = fs::path(router.endpoint().substr(6)).parent_path();
    struct stat status {};
    ASSERT_EQ(::stat(folder.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700U);
  }
  EXPECT_FALSE(fs::exists(folder));
}

TEST(Socket, NamesAnUnusableEndpoint) {
  const RouterSocket first = bind("tcp://127.0.0.1:0");
  const auto second = RouterSocket::bind(first.endpoint(), kDefaults, kNoLog);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().context.find(first.endpoint()), std::string::npos);
  EXPECT_NE(second.error().context.find("in use"), std::string::npos) << second.error().context;
  EXPECT_FALSE(RouterSocket::bind("pigeon://loft", kDefaults, kNoLog));
  EXPECT_FALSE(RouterSocket::bind("tcp://no such host:1", kDefaults, kNoLog));
  EXPECT_FALSE(DealerSocket::connect("pigeon://loft", kDefaults, kNoLog));
}

}  // namespace
}  // namespace temper::actors
