// The server over real sockets, with an unauthenticated client, a slow client and a browser.
#include "cli/serve/server.hpp"

#include "cli/watch/live.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "tests/support/temporary_folder.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <charconv>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// A connection whose reads end after ten seconds, so that no failure hangs.
class Client {
 public:
  explicit Client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval patience{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { ::close(fd_); }

  bool connected() const { return connected_; }
  bool say(std::string_view text) const {
    return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// What comes until `end` stands in it, or until the server closes. "timeout": it did neither.
  std::string read(std::string_view end = {}) const {
    std::string got;
    std::array<char, 4096> piece{};
    while (end.empty() || got.find(end) == std::string::npos) {
      const ssize_t n = ::recv(fd_, piece.data(), piece.size(), 0);
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return "timeout";
      if (n <= 0)
        break;
      got.append(piece.data(), static_cast<std::size_t>(n));
    }
    return got;
  }
  bool is_closed_within(int milliseconds) const {
    pollfd ends{fd_, POLLIN | POLLRDHUP, 0};
    return ::poll(&ends, 1, milliseconds) != 0;
  }
  std::string ask(std::string_view text) const { return say(text) ? read() : "not taken"; }

 private:
  int fd_;
  bool connected_ = false;
};

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    fs::create_directory(folder_ / "first");
    EXPECT_TRUE(write_file_atomically(folder_ / "first/config.yaml", "name: first\n"));
    EXPECT_TRUE(write_file_atomically(folder_ / "first/events.log", ""));
    Live live;
    live.subtitle = "before";
    write(live);
  }
  void write(const Live& live) const {
    EXPECT_TRUE(write_file_atomically(folder_ / "first/live.json", to_json(live)));
  }
  /// Its port.
  std::uint16_t start(std::chrono::milliseconds patience, std::string address = "127.0.0.1") {
    ServerOptions options;
    options.folders = {folder_.path()};
    options.address = std::move(address);
    options.patience = patience;
    auto server = Server::start(options);
    EXPECT_TRUE(server);
    server_ = *std::move(server);
    const std::string& url = server_->url();
    const std::size_t colon = url.rfind(':', url.find("/", 8));
    std::uint16_t port = 0;
    std::from_chars(url.data() + colon + 1, url.data() + url.size(), port);
    return port;
  }

  std::string token() const { return server_->url().substr(server_->url().find("token=") + 6); }
  /// A request with the token; `headers` end with "\r\n" each.
  std::string get(const std::string& path,
                  const std::string& headers = "Connection: close\r\n") const {
    return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token() +
           "\r\n" + headers + "\r\n";
  }

  test::TemporaryFolder folder_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, WithoutTheTokenNothingIsToldOnAnyAddress) {
  for (const char* address : {"127.0.0.1", "0.0.0.0"}) {
    const std::uint16_t port = start(10s, address);
    ASSERT_EQ(token().size(), 32U);
    for (const std::string path :
         {"/", "/api/runs", "/api/runs/first/samples", "/metrics", "/page.js", "/?token=", "/x"}) {
      const std::string answer =
          Client(port).ask("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 401")) << answer;
      EXPECT_EQ(answer.find("first"), std::string::npos);
    }
    const std::string shown = Client(port).ask("GET /api/runs?token=" + token() +
                                               " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(shown.starts_with("HTTP/1.1 200")) << shown;
    EXPECT_NE(shown.find("Content-Security-Policy: default-src 'none'"), std::string::npos);
  }
}

TEST_F(ServerTest, EachStartHasATokenOfItsOwn) {
  start(10s);
  const std::string first = token();
  start(10s);
  EXPECT_NE(token(), first);
}

TEST_F(ServerTest, NoPathLeadsToAFile) {
  const std::uint16_t port = start(10s);
  for (const std::string path :
       {"/../../etc/passwd", "/api/runs/first/../config.yaml", "/api/runs/..%2f..%2fetc/config"})
    EXPECT_TRUE(Client(port).ask(get(path)).starts_with("HTTP/1.1 404")) << path;
}

TEST_F(ServerTest, HugeRequestsAreClosedUnanswered) {
  const std::uint16_t port = start(10s);
  const std::string a(100000, 'a');
  for (const std::string& huge :
       {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + a + "\r\n\r\n",
        "GET /" + a + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + a}) {
    const Client client(port);
    client.say(huge);
    EXPECT_EQ(client.read(), "");
  }
}

TEST_F(ServerTest, ARequestThatComesSlowlyIsEndedWhenItsTimeIsOver) {
  const std::uint16_t port = start(200ms);
  EXPECT_EQ(Client(port).ask("GET / HT"), "");
  // Nor does another byte now and then buy more time: this would take a minute.
  const Client drip(port);
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(600, 'a');
  std::size_t sent = 0;
  while (sent < request.size() && drip.say(request.substr(sent, 1)) && !drip.is_closed_within(100))
    ++sent;
  EXPECT_LT(sent, request.size());
}

TEST_F(ServerTest, AFrameComesWhenTheRunHasChanged) {
  const std::uint16_t port = start(10s);
  const Client client(port);
  client.say(get("/api/runs/first/stream"));
  EXPECT_NE(client.read("\n\n").find("before"), std::string::npos);
  Live live;
  live.subtitle = "after";
  write(live);
  EXPECT_NE(client.read("after").find("data: {\"id\":\"first\""), std::string::npos);
}

/// What zlib's reader makes of a stream that has not ended.
std::string inflated(std::string_view packed) {
  z_stream z{};
  EXPECT_EQ(inflateInit2(&z, 15 + 16), Z_OK);
  std::string out(1 << 20, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  z.avail_in = static_cast<uInt>(packed.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&z, Z_SYNC_FLUSH);
  EXPECT_TRUE(status == Z_OK || status == Z_BUF_ERROR) << status;
  out.resize(out.size() - z.avail_out);
  inflateEnd(&z);
  return out;
}

TEST_F(ServerTest, APackedStreamCanBeReadFrameByFrame) {
  const std::uint16_t port = start(10s);
  const Client client(port);
  client.say(get("/api/runs/first/stream", "Accept-Encoding: gzip\r\n"));
  std::string got = client.read("\xff\xff");  // each frame ends with a flush
  const std::size_t body = got.find("\r\n\r\n") + 4;
  EXPECT_NE(got.find("Content-Encoding: gzip"), std::string::npos);
  EXPECT_NE(inflated(std::string_view(got).substr(body)).find("before"), std::string::npos);
  Live live;
  live.subtitle = "after";
  write(live);
  got += client.read("\xff\xff");
  const std::string text = inflated(std::string_view(got).substr(body));
  EXPECT_TRUE(text.starts_with("data: {"));
  EXPECT_LT(text.find("before"), text.find("\n\ndata: {"));
  EXPECT_LT(text.find("\n\ndata: {"), text.find("after"));
}

TEST_F(ServerTest, ClientsThatShowNoTokenKeepNobodyOutWhoHasIt) {
  const std::uint16_t port = start(10s);
  std::vector<std::unique_ptr<Client>> unproven;
  for (std::size_t i = 0; i < Server::kMostClients; ++i) {
    unproven.push_back(std::make_unique<Client>(port));
    unproven.back()->say("GET / HT");
  }
  for (const char* path : {"/metrics", "/page.css", "/api/runs"})
    EXPECT_TRUE(Client(port).ask(get(path)).starts_with("HTTP/1.1 200")) << path;
  const Client follower(port);
  follower.say(get("/api/runs/first/stream"));
  EXPECT_NE(follower.read("\n\n").find("before"), std::string::npos);
  for (std::size_t i = 0; i < Server::kMostUnproven; ++i)
    unproven.push_back(std::make_unique<Client>(port));
  EXPECT_EQ(unproven.front()->read(), "") << "the oldest are closed";
  Live live;
  live.subtitle = "after";
  write(live);
  EXPECT_NE(follower.read("after"), "timeout") << "but not who has shown the token";
}

TEST_F(ServerTest, ClientsThatStayLeaveRoomForOthersThatShowTheToken) {
  const std::uint16_t port = start(10s);
  std::vector<std::unique_ptr<Client>> followers;
  for (std::size_t i = 0; i < Server::kMostClients - Server::kMostUnproven; ++i) {
    followers.push_back(std::make_unique<Client>(port));
    followers.back()->say(get("/api/runs/first/stream", ""));
    ASSERT_NE(followers.back()->read("\n\n").find("before"), std::string::npos) << i;
  }
  EXPECT_TRUE(Client(port).ask(get("/api/runs/first/stream", "")).starts_with("HTTP/1.1 503"));
  EXPECT_TRUE(Client(port).ask(get("/metrics", "")).starts_with("HTTP/1.1 200"))
      << "answered, then closed";
  followers.pop_back();
  std::string answer;  // taken once the server has seen that it went
  for (int i = 0; i < 100 && !answer.starts_with("HTTP/1.1 200"); ++i) {
    const Client next(port);
    next.say(get("/api/runs/first/stream", ""));
    answer = next.read("\r\n");
  }
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
}

/// Processor time of this process, all threads.
std::chrono::microseconds processor_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

TEST_F(ServerTest, WithoutDescriptorsItWaitsAndAnswersOnceThereAreSome) {
  const std::uint16_t port = start(10s);
  const int next = ::dup(0);
  ::close(next);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit one_more{static_cast<rlim_t>(next) + 1, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &one_more);
  const Client client(port);  // has the last one
  const auto began = processor_time();
  const bool closed = client.is_closed_within(1000);
  const auto spent = processor_time() - began;
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(closed);
  EXPECT_LT(spent, 100ms) << "it tries again and again";
  EXPECT_TRUE(client.ask(get("/page.css")).starts_with("HTTP/1.1 200"));
}

}  // namespace
}  // namespace temper::cli
