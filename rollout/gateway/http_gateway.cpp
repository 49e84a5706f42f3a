// The only file of this room that includes Boost.Beast: it takes 20 seconds to compile.
#include "rollout/gateway/http_gateway.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

namespace temper::rollout {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace net = boost::asio;
using tcp = net::ip::tcp;

constexpr std::uint64_t kLargestBody = std::uint64_t{64} << 20;
/// A connection on which nothing is asked for so long is closed.
constexpr auto kKeptFor = std::chrono::minutes(10);

}  // namespace

class HttpGateway::Io {
 public:
  explicit Io(tcp::acceptor acceptor, std::unique_ptr<net::io_context> context)
      : context_(std::move(context)),
        guard_(net::make_work_guard(*context_)),
        acceptor_(std::move(acceptor)) {
    accept();
    thread_ = std::thread([this] { context_->run(); });
  }
  ~Io() {
    net::post(*context_, [this] {
      guard_.reset();
      context_->stop();
    });
    thread_.join();
  }
  Io(const Io&) = delete;
  Io& operator=(const Io&) = delete;

  std::vector<GatewayCall> take(Duration patience) {
    std::unique_lock lock(mutex_);
    if (arrived_.empty() && patience > Duration::zero())
      changed_.wait_for(lock, patience, [this] { return !arrived_.empty(); });
    return std::exchange(arrived_, {});
  }
  void answer(std::uint64_t ticket, int status, std::string body) {
    net::post(*context_, [this, ticket, status, body = std::move(body)]() mutable {
      send(ticket, status, std::move(body));
    });
  }

 private:
  /// Reads a request, waits for its answer, sends it, reads the next. Kept alive by its handlers,
  /// and while it waits by waiting_.
  struct Connection : std::enable_shared_from_this<Connection> {
    explicit Connection(tcp::socket socket) : stream(std::move(socket)) {}
    beast::tcp_stream stream;
    beast::flat_buffer buffer;
    std::optional<http::request_parser<http::string_body>> parser;
    http::response<http::string_body> response;
    bool keep = true;
  };
  using Shared = std::shared_ptr<Connection>;

  void accept() {
    acceptor_.async_accept([this](beast::error_code failed, tcp::socket socket) {
      if (!failed) {
        beast::error_code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        read(std::make_shared<Connection>(std::move(socket)));
      }
      accept();
    });
  }

  void read(const Shared& c) {
    c->parser.emplace();
    c->parser->body_limit(kLargestBody);
    c->stream.expires_after(kKeptFor);
    http::async_read(
        c->stream, c->buffer, *c->parser, [this, c](beast::error_code failed, std::size_t) {
          if (failed)
            return;  // Closed with its last holder.
          c->stream.expires_never();
          auto request = c->parser->release();
          c->keep = request.keep_alive();
          const std::uint64_t ticket = ++last_;
          waiting_.emplace(ticket, c);
          const std::lock_guard lock(mutex_);
          arrived_.push_back({ticket,
                              std::string(request.method_string()),
                              std::string(request.target()),
                              std::move(request.body())});
          if (arrived_.size() == 1)
            changed_.notify_one();
        });
  }

  void send(std::uint64_t ticket, int status, std::string body) {
    const auto found = waiting_.find(ticket);
    if (found == waiting_.end())
      return;
    const Shared c = std::move(found->second);
    waiting_.erase(found);
    c->response = {};
    c->response.version(11);
    c->response.result(static_cast<unsigned>(status));
    c->response.set(http::field::content_type, "application/json");
    c->response.keep_alive(c->keep);
    c->response.body() = std::move(body);
    c->response.prepare_payload();
    c->stream.expires_after(kKeptFor);
    http::async_write(c->stream, c->response, [this, c](beast::error_code failed, std::size_t) {
      if (!failed && c->keep)
        read(c);
    });
  }

  const std::unique_ptr<net::io_context> context_;
  net::executor_work_guard<net::io_context::executor_type> guard_;
  tcp::acceptor acceptor_;
  std::unordered_map<std::uint64_t, Shared> waiting_;  ///< By ticket.
  std::uint64_t last_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<GatewayCall> arrived_;  ///< Under mutex_.
  std::thread thread_;
};

Result<std::unique_ptr<HttpGateway>> HttpGateway::listen() {
  auto context = std::make_unique<net::io_context>(1);
  tcp::acceptor acceptor(*context);
  beast::error_code failed;
  const tcp::endpoint where(net::ip::address_v4::loopback(), 0);
  acceptor.open(where.protocol(), failed);
  if (!failed)
    acceptor.bind(where, failed);
  if (!failed)
    acceptor.listen(4096, failed);
  if (failed) {
    return Error{ErrorCode::Unavailable,
                 fmt::format("no port on 127.0.0.1 for the gateway: {}", failed.message())};
  }
  std::string address = fmt::format("http://127.0.0.1:{}", acceptor.local_endpoint().port());
  return std::unique_ptr<HttpGateway>(new HttpGateway(
      std::make_unique<Io>(std::move(acceptor), std::move(context)), std::move(address)));
}

HttpGateway::HttpGateway(std::unique_ptr<Io> io, std::string address)
    : io_(std::move(io)), address_(std::move(address)) {}
HttpGateway::~HttpGateway() = default;

std::vector<GatewayCall> HttpGateway::take(Duration patience) {
  return io_->take(patience);
}
void HttpGateway::answer(std::uint64_t ticket, int status, std::string body) {
  io_->answer(ticket, status, std::move(body));
}

}  // namespace temper::rollout
