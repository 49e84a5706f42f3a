// The only file of this module that includes Boost.Beast: it takes 20 seconds to compile.
#include "rollout/gateway/http_gateway.hpp"

#include "rollout/gateway/gateway_api.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include <array>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace temper::rollout {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace net = boost::asio;
using tcp = net::ip::tcp;

constexpr std::uint32_t kLargestHeader = 8192;
/// Bytes per read, which limits what a client without a session makes the gateway buffer.
constexpr std::size_t kReadAtOnce = 16384;
/// Delay after accept() fails for lack of descriptors; an immediate retry would only use CPU time.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
constexpr unsigned kNoRoute = 404, kSessionGone = 410, kBodyTooLarge = 413;

}  // namespace

class HttpGateway::Io {
 public:
  Io(tcp::acceptor acceptor, std::unique_ptr<net::io_context> context, const GatewayLimits& limits)
      : limits_(limits),
        context_(std::move(context)),
        guard_(net::make_work_guard(*context_)),
        acceptor_(std::move(acceptor)),
        pause_(*context_) {
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

  void admit(const std::string& session) {
    const std::lock_guard lock(mutex_);
    sessions_.insert(session);
  }
  void dismiss(const std::string& session) {
    const std::lock_guard lock(mutex_);
    sessions_.erase(session);
  }
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
  struct Connection;
  using Shared = std::shared_ptr<Connection>;
  using UnauthenticatedConnections = std::list<Connection*>;

  /// Reads a request, waits for its answer, sends it, and reads the next. Its handlers own it;
  /// while it waits for an answer, waiting_ does.
  struct Connection : std::enable_shared_from_this<Connection> {
    Connection(tcp::socket socket, UnauthenticatedConnections& unauthenticated)
        : stream(std::move(socket)),
          unauthenticated_(unauthenticated),
          place_(unauthenticated.insert(unauthenticated.end(), this)) {}
    ~Connection() { prove(); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    bool is_proven() const { return !place_; }
    /// Removes it from the connections that have not named a session.
    void prove() {
      if (place_)
        unauthenticated_.erase(*std::exchange(place_, std::nullopt));
    }
    /// Makes its pending handlers fail; it is destroyed with the last of them.
    void close() {
      prove();
      stream.close();
    }

    beast::tcp_stream stream;
    beast::flat_buffer buffer{kReadAtOnce};
    std::optional<http::request_parser<http::string_body>> parser;
    http::response<http::string_body> response;
    bool keep = true;

   private:
    UnauthenticatedConnections& unauthenticated_;
    std::optional<UnauthenticatedConnections::iterator> place_;
  };

  void accept() {
    acceptor_.async_accept([this](beast::error_code failed, tcp::socket socket) {
      if (failed == net::error::operation_aborted)
        return;
      if (failed)
        return accept_later();
      beast::error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      if (unauthenticated_.size() >= limits_.unauthenticated)
        unauthenticated_.front()->close();
      read(std::make_shared<Connection>(std::move(socket), unauthenticated_));
      accept();
    });
  }

  void accept_later() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](beast::error_code stopped) {
      if (!stopped)
        accept();
    });
  }

  void read(const Shared& c) {
    c->parser.emplace();
    c->parser->header_limit(kLargestHeader);
    c->parser->body_limit(limits_.body);
    c->stream.expires_after(c->is_proven() ? limits_.idle : limits_.header);
    http::async_read_header(
        c->stream, c->buffer, *c->parser, [this, c](beast::error_code failed, std::size_t) {
          if (failed == http::error::body_limit) {
            return refuse(c,
                          kBodyTooLarge,
                          fmt::format("the body exceeds the limit of {} bytes", limits_.body));
          }
          if (failed)
            return;  // Closed with its last owner.
          const auto target = parse_target(std::string(c->parser->get().target()));
          if (!target)
            return refuse(c, kNoRoute, target.error().context);
          if (!is_admitted(target->session))
            return refuse(c, kSessionGone, kNoSession);
          c->prove();
          read_body(c);
        });
  }

  bool is_admitted(const std::string& session) {
    const std::lock_guard lock(mutex_);
    return sessions_.contains(session);
  }

  void read_body(const Shared& c) {
    c->stream.expires_after(limits_.body_time);
    http::async_read(
        c->stream, c->buffer, *c->parser, [this, c](beast::error_code failed, std::size_t) {
          if (failed == http::error::body_limit) {
            return refuse(c,
                          kBodyTooLarge,
                          fmt::format("the body exceeds the limit of {} bytes", limits_.body));
          }
          if (failed)
            return;
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
    write(c, static_cast<unsigned>(status), std::move(body));
  }

  /// Refuses a request without reading its body, so the connection cannot be used again.
  void refuse(const Shared& c, unsigned status, std::string_view why) {
    c->keep = false;
    write(c, status, write_error(why));
  }

  void write(const Shared& c, unsigned status, std::string body) {
    c->response = {};
    c->response.version(11);
    c->response.result(status);
    c->response.set(http::field::content_type, "application/json");
    c->response.keep_alive(c->keep);
    c->response.body() = std::move(body);
    c->response.prepare_payload();
    c->stream.expires_after(limits_.body_time);
    http::async_write(c->stream, c->response, [this, c](beast::error_code failed, std::size_t) {
      if (failed)
        return;
      if (c->keep)
        return read(c);
      beast::error_code ignored;
      c->stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
      c->stream.expires_after(limits_.header);
      discard(c, std::chrono::steady_clock::now() + limits_.header);
    });
  }

  /// Reads and discards what the client still sends: closing with unread bytes would reset the
  /// connection, and the client might lose the answer. The timeout of a stream does not fire if
  /// reads never wait, so the time is checked after each.
  void discard(const Shared& c, std::chrono::steady_clock::time_point until) {
    c->stream.async_read_some(net::buffer(scrap_),
                              [this, c, until](beast::error_code failed, std::size_t) {
                                if (!failed && std::chrono::steady_clock::now() < until)
                                  discard(c, until);
                              });
  }

  const GatewayLimits limits_;
  /// Oldest first; declared before the owners of connections.
  UnauthenticatedConnections unauthenticated_;
  const std::unique_ptr<net::io_context> context_;
  net::executor_work_guard<net::io_context::executor_type> guard_;
  tcp::acceptor acceptor_;
  net::steady_timer pause_;
  std::array<char, kReadAtOnce> scrap_{};
  std::unordered_map<std::uint64_t, Shared> waiting_;  ///< By ticket.
  std::uint64_t last_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<GatewayCall> arrived_;          ///< Under mutex_.
  std::unordered_set<std::string> sessions_;  ///< Under mutex_.
  std::thread thread_;
};

Result<std::unique_ptr<HttpGateway>> HttpGateway::listen(const GatewayLimits& limits) {
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
                 fmt::format("cannot listen on 127.0.0.1 for the gateway: {}", failed.message())};
  }
  std::string address = fmt::format("http://127.0.0.1:{}", acceptor.local_endpoint().port());
  return std::unique_ptr<HttpGateway>(new HttpGateway(
      std::make_unique<Io>(std::move(acceptor), std::move(context), limits), std::move(address)));
}

HttpGateway::HttpGateway(std::unique_ptr<Io> io, std::string address)
    : io_(std::move(io)), address_(std::move(address)) {}
HttpGateway::~HttpGateway() = default;

void HttpGateway::admit(const std::string& session) {
  io_->admit(session);
}
void HttpGateway::dismiss(const std::string& session) {
  io_->dismiss(session);
}
std::vector<GatewayCall> HttpGateway::take(Duration patience) {
  return io_->take(patience);
}
void HttpGateway::answer(std::uint64_t ticket, int status, std::string body) {
  io_->answer(ticket, status, std::move(body));
}

}  // namespace temper::rollout
