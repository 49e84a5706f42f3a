// The agents' endpoint, used as other users of the machine could use it.
#include "rollout/gateway/http_gateway.hpp"

#include "core/file_descriptor.hpp"
#include "core/json_document.hpp"
#include "core/random.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

namespace temper::rollout {
namespace {

using namespace std::chrono_literals;

/// A connection whose reads time out after ten seconds, so that a failing test does not hang.
class Client {
 public:
  explicit Client(const HttpGateway& gateway)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{10, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    const std::string& address = gateway.address();
    std::uint16_t port = 0;
    std::from_chars(address.data() + address.rfind(':') + 1, address.data() + address.size(), port);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  /// False: the peer has closed.
  bool say(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0)
        return false;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  /// Reads until the text has `end`, or the connection ends. Returns "timeout" if neither happens.
  std::string read(std::string_view end = {}) const {
    std::string got;
    std::array<char, 4096> piece{};
    while (end.empty() || got.find(end) == std::string::npos) {
      const ssize_t n = ::recv(fd_.get(), piece.data(), piece.size(), 0);
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return "timeout";
      if (n <= 0)
        break;
      got.append(piece.data(), static_cast<std::size_t>(n));
    }
    return got;
  }
  bool is_closed_within(int milliseconds) const {
    pollfd ends{fd_.get(), POLLIN | POLLRDHUP, 0};
    return ::poll(&ends, 1, milliseconds) != 0;
  }
  int status(std::string_view request) const {
    say(request);
    const std::string answer = read("\r\n\r\n");
    int status = 0;
    if (answer.starts_with("HTTP/1.1 "))
      std::from_chars(answer.data() + 9, answer.data() + answer.size(), status);
    return status;
  }

 private:
  FileDescriptor fd_;
};

std::string post(std::string_view target, std::string_view body) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", target, body.size(), body);
}

class HttpGatewayTest : public testing::Test {
 protected:
  void listen(const GatewayLimits& limits = {}) {
    gateway_ = HttpGateway::listen(limits).value();
    gateway_->admit("known");
  }
  /// Receives one call and answers it.
  GatewayCall serve_one() {
    std::vector<GatewayCall> calls;
    for (int i = 0; i < 100 && calls.empty(); ++i)
      calls = gateway_->take(100ms);
    EXPECT_EQ(calls.size(), 1U);
    if (calls.empty())
      return {};
    gateway_->answer(calls[0].ticket, 200, "{}");
    return calls[0];
  }
  std::unique_ptr<HttpGateway> gateway_;
};

constexpr std::string_view kTurn = "/sessions/known/v1/completions";

TEST_F(HttpGatewayTest, AnswersTheRequestsOfASessionInOrder) {
  listen();
  const Client agent(*gateway_);
  for (const std::string body : {"{}", R"({"a": 1})", ""}) {
    agent.say(post(kTurn, body));
    const GatewayCall call = serve_one();
    EXPECT_EQ(call.target, kTurn);
    EXPECT_EQ(call.body, body);
    EXPECT_NE(agent.read("{}").find("HTTP/1.1 200"), std::string::npos);
  }
}

TEST_F(HttpGatewayTest, ReadsNoBodyWithoutASession) {
  listen();
  for (const auto& [target, status] :
       std::vector<std::pair<std::string, int>>{{"/x", 404},
                                                {"/", 404},
                                                {"/sessions/known", 404},
                                                {"/sessions/known/v1/other", 404},
                                                {"/sessions//v1/completions", 410},
                                                {"/sessions/unknown/v1/completions", 410},
                                                {"/sessions/Known/v1/completions", 410},
                                                {"/sessions/known%20/v1/completions", 410},
                                                {"/sessions/unknown/v1/models", 410},
                                                {"/sessions/known/../known/v1/completions", 404}}) {
    const Client outsider(*gateway_);
    // The answer comes before the body.
    EXPECT_EQ(outsider.status("POST " + target +
                              " HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n"),
              status)
        << target;
  }
  gateway_->dismiss("known");
  EXPECT_EQ(Client(*gateway_).status(post(kTurn, "{}")), 410);
  EXPECT_TRUE(gateway_->take(Duration(0)).empty());
}

TEST_F(HttpGatewayTest, DrainsAndClosesARefusedClientThatKeepsSending) {
  GatewayLimits limits;
  limits.header = 200ms;
  listen(limits);
  const Client outsider(*gateway_);
  EXPECT_EQ(outsider.status("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n"),
            404);
  const std::string piece(1 << 16, 'x');
  int sent = 0;
  while (sent < 100'000 && outsider.say(piece))
    ++sent;
  EXPECT_LT(sent, 100'000) << "more than 6 GB were read";
}

TEST_F(HttpGatewayTest, LimitsTheBody) {
  GatewayLimits limits;
  limits.body = 1000;
  listen(limits);
  EXPECT_EQ(Client(*gateway_).status("POST " + std::string(kTurn) +
                                     " HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n"),
            413);
  const std::string chunk = "800\r\n" + std::string(0x800, 'x') + "\r\n";
  EXPECT_EQ(Client(*gateway_).status("POST " + std::string(kTurn) +
                                     " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
                                     chunk),
            413);
  const Client agent(*gateway_);
  agent.say(post(kTurn, std::string(1000, 'x')));
  EXPECT_EQ(serve_one().body.size(), 1000U);
}

TEST_F(HttpGatewayTest, LimitsTheSizeAndTimeOfAHeader) {
  GatewayLimits limits;
  limits.header = 200ms;
  listen(limits);
  const Client large(*gateway_);
  large.say("GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n\r\n");
  EXPECT_EQ(large.read(), "");
  const Client silent(*gateway_);
  EXPECT_EQ(silent.read(), "");
  // Sending a byte now and then does not extend the time: this would take a minute.
  const Client drip(*gateway_);
  int sent = 0;
  while (sent < 600 && drip.say("G") && !drip.is_closed_within(100))
    ++sent;
  EXPECT_LT(sent, 600);
}

TEST_F(HttpGatewayTest, UnauthenticatedPeersCannotLockOutAnAgent) {
  GatewayLimits limits;
  limits.unauthenticated = 20;
  listen(limits);
  const Client agent(*gateway_);
  agent.say(post(kTurn, "{}"));
  serve_one();
  EXPECT_NE(agent.read("{}").find("200"), std::string::npos);
  std::vector<std::unique_ptr<Client>> unauthenticated;
  for (std::size_t i = 0; i < 3 * limits.unauthenticated; ++i) {
    unauthenticated.push_back(std::make_unique<Client>(*gateway_));
    unauthenticated.back()->say("POST /x HT");
  }
  EXPECT_EQ(unauthenticated.front()->read(), "") << "the oldest are closed";
  agent.say(post(kTurn, "{}"));
  serve_one();
  EXPECT_NE(agent.read("{}").find("200"), std::string::npos) << "an agent is not closed";
  const Client another(*gateway_);
  another.say(post(kTurn, "{}"));
  serve_one();
  EXPECT_NE(another.read("{}").find("200"), std::string::npos);
}

/// CPU time of all threads of this process.
std::chrono::microseconds processor_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

TEST_F(HttpGatewayTest, WaitsForFileDescriptors) {
  listen();
  const int next = ::dup(0);
  ::close(next);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit one_more{static_cast<rlim_t>(next) + 1, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &one_more);
  const Client client(*gateway_);  // Uses the last descriptor.
  const auto began = processor_time();
  const bool closed = client.is_closed_within(1000);
  const auto spent = processor_time() - began;
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(closed);
  EXPECT_LT(spent, 100ms) << "it must not busy-wait";
  EXPECT_EQ(client.status("GET /x HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
}

/// Malformed requests from a generator: only complete requests of the session reach the engine, and
/// the gateway survives.
TEST_F(HttpGatewayTest, SurvivesArbitraryInput) {
  GatewayLimits limits;
  limits.header = 50ms;
  limits.body_time = 50ms;
  limits.body = 10'000;
  listen(limits);
  Random random(1, "requests");
  const auto pick = [&](auto list) { return list[random.below(list.size())]; };
  using Texts = std::vector<std::string>;
  for (int i = 0; i < 300; ++i) {
    std::string request = pick(Texts{"POST", "GET", "PRI", "", "P\0ST", "POST POST"}) + " " +
                          pick(Texts{std::string(kTurn),
                                     "/sessions/known/v1/models",
                                     "/sessions/other/v1/completions",
                                     "*",
                                     "http://h" + std::string(kTurn),
                                     "/" + std::string(random.below(20'000), 'a')}) +
                          pick(Texts{" HTTP/1.1", " HTTP/1.0", " HTTP/9", ""}) + "\r\n" +
                          pick(Texts{"Host: x\r\n", "", ": x\r\n", "A\r\n", "\0: \r\n"}) +
                          pick(Texts{"Content-Length: 2\r\n",
                                     "Content-Length: -1\r\n",
                                     "Content-Length: 99999999999999999999\r\n",
                                     "Content-Length: 2\r\nContent-Length: 3\r\n",
                                     "Transfer-Encoding: chunked\r\n",
                                     "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
                                     "Transfer-Encoding: gzip\r\n",
                                     "Expect: 100-continue\r\n",
                                     ""}) +
                          pick(Texts{"\r\n", "\n", ""}) +
                          pick(Texts{"{}",
                                     "",
                                     "2\r\n{}\r\n0\r\n\r\n",
                                     "ffffffffffffffff\r\n",
                                     "2;" + std::string(random.below(50'000), 'x'),
                                     std::string(random.below(20'000), '\xff')});
    if (random.chance(0.3))
      request.resize(random.below(request.size() + 1));
    {
      const Client client(*gateway_);
      client.say(request);
      if (random.chance(0.5))
        client.is_closed_within(20);
    }
    for (const GatewayCall& call : gateway_->take(Duration(0))) {
      EXPECT_NE(call.target.find("/sessions/known/"), std::string::npos) << call.target;
      EXPECT_LE(call.body.size(), limits.body);
      gateway_->answer(call.ticket, 200, "{}");
    }
  }
  const Client agent(*gateway_);
  agent.say(post("/sessions/known/v1/models", "last"));
  bool served = false;
  for (int i = 0; i < 100 && !served; ++i) {
    for (const GatewayCall& call : gateway_->take(100ms)) {
      served = served || call.body == "last";
      gateway_->answer(call.ticket, 200, "{}");
    }
  }
  EXPECT_TRUE(served);
}

}  // namespace
}  // namespace temper::rollout
