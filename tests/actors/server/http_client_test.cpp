#include "actors/server/http_client.hpp"

#include "core/file_descriptor.hpp"
#include "core/random.hpp"
#include "tests/support/fake_server.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

namespace temper::test {
namespace {

using actors::HttpAnswer;
using actors::HttpClient;

class HttpClientTest : public testing::Test {
 protected:
  Result<actors::Url> url() const { return actors::parse_url(fake_.address()); }
  static actors::HttpRequest health() { return {"GET", "/health", {}, std::chrono::seconds(10)}; }

  FakeServer fake_{actors::EngineKind::Vllm};
  HttpClient client_{url().value(), 50};
};

TEST_F(HttpClientTest, AnswersMoreRequestsThanConnectionsOnce) {
  std::set<HttpClient::Ticket> sent, answered;
  for (int i = 0; i < 500; ++i)
    sent.insert(client_.send(health()));
  while (answered.size() < sent.size()) {
    const auto arrived = client_.take(std::chrono::seconds(10));
    ASSERT_FALSE(arrived.empty());
    for (const auto& [ticket, answer] : arrived) {
      EXPECT_EQ(answer.status, 200);
      EXPECT_TRUE(answered.insert(ticket).second);
    }
  }
  EXPECT_EQ(sent, answered);
}

TEST_F(HttpClientTest, ReturnsStatusAndBodyOfAnError) {
  const HttpAnswer answer = client_.call({"GET", "/nowhere", {}, std::chrono::seconds(10)});
  EXPECT_EQ(answer.status, 404);
  EXPECT_NE(answer.body.find("Not Found"), std::string::npos);
  EXPECT_FALSE(answer.good());
}

TEST_F(HttpClientTest, NamesTheReasonForNoResponse) {
  const auto port = fake_.port();
  fake_.kill();
  const HttpAnswer answer = client_.call(health());
  EXPECT_EQ(answer.status, 0);
  EXPECT_NE(answer.failure.find(std::to_string(port)), std::string::npos);
  EXPECT_NE(answer.failure.find("/health"), std::string::npos);
}

TEST_F(HttpClientTest, ContinuesAfterTheServerRestarts) {
  ASSERT_TRUE(client_.call(health()).good());
  fake_.kill();
  fake_.start_again();
  // The kept connection is closed; the request goes out once more on a new one.
  EXPECT_TRUE(client_.call(health()).good());
}

TEST_F(HttpClientTest, GivesUpAtTheDeadline) {
  fake_.tell(R"({"faults": {"hangs": -1}})");
  const HttpAnswer answer =
      client_.call({"POST",
                    "/inference/v1/generate",
                    R"({"token_ids": [3], "sampling_params": {"max_tokens": 1}})",
                    std::chrono::milliseconds(50)});
  EXPECT_EQ(answer.status, 0);
  EXPECT_NE(answer.failure.find("deadline"), std::string::npos);
}

TEST_F(HttpClientTest, ServesNewRequestsAfterDropAll) {
  fake_.tell(R"({"faults": {"hangs": -1}})");
  const actors::HttpRequest hanging{"POST",
                                    "/inference/v1/generate",
                                    R"({"token_ids": [3], "sampling_params": {"max_tokens": 1}})",
                                    std::chrono::seconds(60)};
  for (int i = 0; i < 60; ++i)
    client_.send(hanging);
  client_.drop_all();
  const auto ticket = client_.send(health());
  const auto arrived = client_.take(std::chrono::seconds(10));
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].ticket, ticket);
}

/// A server that answers every request with what `say` sends, then closes the connection.
class BadServer {
 public:
  /// Returns false once the client has closed the connection.
  using Send = std::function<bool(std::string_view)>;
  explicit BadServer(std::function<void(const Send&)> say)
      : say_(std::move(say)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof to;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&to), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&to), &size), 0);
    port_ = ntohs(to.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~BadServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  BadServer(const BadServer&) = delete;
  BadServer& operator=(const BadServer&) = delete;
  actors::Url url() const {
    return actors::parse_url("http://127.0.0.1:" + std::to_string(port_)).value();
  }

 private:
  void serve() {
    for (;;) {
      const FileDescriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.is_open())
        return;
      std::string request;
      std::array<char, 4096> piece{};
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t n = ::recv(client.get(), piece.data(), piece.size(), 0);
        if (n <= 0)
          break;
        request.append(piece.data(), static_cast<std::size_t>(n));
      }
      say_([&](std::string_view text) {
        while (!text.empty()) {
          const ssize_t n = ::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
          if (n <= 0)
            return false;
          text.remove_prefix(static_cast<std::size_t>(n));
        }
        return true;
      });
    }
  }
  const std::function<void(const Send&)> say_;
  const FileDescriptor listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

/// Sends `begin`, then repeats `piece` as long as the client reads, up to 4 GiB.
std::function<void(const BadServer::Send&)> endless(std::string begin, std::string piece) {
  return [begin = std::move(begin), piece = std::move(piece)](const BadServer::Send& send) {
    if (!send(begin))
      return;
    for (std::size_t sent = 0; sent < (std::size_t{4} << 30); sent += piece.size()) {
      if (!send(piece))
        return;
    }
    ADD_FAILURE() << "4 GiB were taken";
  };
}

constexpr const char* kChunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST(BadServers, EndlessPartsStopAtTheLimit) {
  const std::string megabyte(1 << 20, 'a');
  std::string fields;
  for (int i = 0; i < 1000; ++i)
    fields += "X-" + std::to_string(i) + ": aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n";
  for (const auto& [begin, piece] : std::vector<std::pair<std::string, std::string>>{
           {std::string(kChunked) + "5;", megabyte},
           {std::string(kChunked) + "5;", "a"},
           {std::string(kChunked) + "5;a=\"", megabyte},
           {kChunked, megabyte},
           {std::string(kChunked) + "2\r\n{}\r\n0\r\nX: ", megabyte},
           {std::string(kChunked) + "2\r\n{}\r\n0\r\n", fields},
           {std::string(kChunked), "100000\r\n" + megabyte + "\r\n"},
           {std::string(kChunked), "1;" + std::string(30'000, 'a') + "\r\na\r\n"},
           {"HTTP/1.1 200 OK\r\nX: ", megabyte},
           {"HTTP/1.1 200 OK\r\n", fields},
           {"HTTP/1.1 200 ", megabyte},
           {"", megabyte},
           {"HTTP/1.1 200 OK\r\n\r\n", megabyte},
           {"HTTP/1.1 200 OK\r\nContent-Length: 4000000000\r\n\r\n", megabyte}}) {
    const BadServer server(endless(begin, piece));
    HttpClient client(server.url(), 1);
    const HttpAnswer answer =
        client.call({"GET", "/health", {}, std::chrono::seconds(20), 1 << 20});
    EXPECT_EQ(answer.status, 0) << begin;
    EXPECT_NE(answer.failure.find("/health"), std::string::npos) << answer.failure;
    EXPECT_EQ(answer.failure.find("deadline"), std::string::npos) << begin << answer.failure;
  }
}

TEST(BadServers, EndlessOutputDelaysNoOtherDeadline) {
  // Within the bound of its body, so that only a deadline can end it.
  const BadServer flood(
      endless("HTTP/1.1 200 OK\r\nContent-Length: 4000000000\r\n\r\n", std::string(1 << 20, ' ')));
  HttpClient client(flood.url(), 2);
  const auto first =
      client.call({"GET", "/first", {}, std::chrono::milliseconds(100), std::uint64_t{1} << 40});
  EXPECT_NE(first.failure.find("deadline"), std::string::npos) << first.failure;
}

TEST(BadServers, BodyLimitIsThatOfTheRequest) {
  const std::string body(5000, 'x');
  const BadServer server([&](const BadServer::Send& send) {
    send("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nConnection: close\r\n\r\n" + body);
  });
  HttpClient client(server.url(), 1);
  const auto ask = [&](std::uint64_t largest) {
    return client.call({"GET", "/x", {}, std::chrono::seconds(20), largest});
  };
  EXPECT_EQ(ask(4999).status, 0);
  EXPECT_EQ(ask(5000).body, body);
}

/// Sends responses composed of valid and invalid parts, truncated and in pieces. Each request must
/// end once and in time.
TEST(BadServers, EachRequestEndsOnceForAnyResponse) {
  Random random(1, "answers");
  using Texts = std::vector<std::string>;
  const auto pick = [&](const Texts& list) { return list[random.below(list.size())]; };
  std::mutex mutex;
  const BadServer server([&](const BadServer::Send& send) {
    std::string answer;
    std::vector<std::size_t> cuts;
    {
      const std::lock_guard lock(mutex);
      answer = pick({"HTTP/1.1 200 OK",
                     "HTTP/1.0 200 OK",
                     "HTTP/1.1 204 X",
                     "HTTP/1.1 100 Continue",
                     "HTTP/2 200",
                     "HTTP/1.1 99999 X",
                     "",
                     "\r\n"}) +
               "\r\n" +
               pick({"Content-Length: 2\r\n",
                     "Content-Length: 20\r\n",
                     "Content-Length: -2\r\n",
                     "Content-Length: 2\r\nContent-Length: 3\r\n",
                     "Transfer-Encoding: chunked\r\n",
                     "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
                     "Connection: close\r\n",
                     "Content-Length: 18446744073709551615\r\n",
                     "",
                     ": \r\n",
                     "X: " + std::string(random.below(100'000), 'x') + "\r\n"}) +
               pick({"\r\n", "\n", ""}) +
               pick({"{}",
                     "",
                     "2\r\n{}\r\n0\r\n\r\n",
                     "2\r\n{}\r\n0\r\nX: y\r\n\r\n",
                     "ffffffffffffffff\r\n",
                     "-1\r\n",
                     "2;" + std::string(random.below(100'000), 'x'),
                     "{}{}",
                     std::string(random.below(50'000), '\xff')});
      if (random.chance(0.3))
        answer.resize(random.below(answer.size() + 1));
      for (int i = 0; i < 3; ++i)
        cuts.push_back(random.below(answer.size() + 1));
    }
    std::ranges::sort(cuts);
    std::size_t begin = 0;
    for (const std::size_t cut : cuts) {
      send(std::string_view(answer).substr(begin, cut - begin));
      begin = cut;
    }
    send(std::string_view(answer).substr(begin));
  });
  HttpClient client(server.url(), 3);
  std::set<HttpClient::Ticket> sent, answered;
  for (int i = 0; i < 500; ++i)
    sent.insert(client.send({"GET", "/x", {}, std::chrono::seconds(20), 10'000}));
  while (answered.size() < sent.size()) {
    const auto arrived = client.take(std::chrono::seconds(25));
    ASSERT_FALSE(arrived.empty());
    for (const auto& [ticket, answer] : arrived) {
      EXPECT_TRUE(answered.insert(ticket).second);
      EXPECT_LE(answer.body.size(), 10'000U);
      EXPECT_EQ(answer.failure.find("deadline"), std::string::npos) << answer.failure;
    }
  }
  EXPECT_EQ(sent, answered);
}

}  // namespace
}  // namespace temper::test
