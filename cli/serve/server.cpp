#include "cli/serve/server.hpp"

#include "cli/serve/site.hpp"
#include "core/secret.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include <charconv>
#include <future>
#include <list>
#include <optional>
#include <set>
#include <thread>
#include <utility>

namespace temper::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

constexpr auto kPeriod = std::chrono::milliseconds(250);

class Session;

/// One frame to send: plain, and compressed for clients that accept gzip.
struct SentFrame {
  std::string plain, packed;
};

/// The state shared by all sessions. Used by one thread only.
struct Shared {
  Shared(SiteOptions options, std::chrono::milliseconds patience_of)
      : site(std::move(options)), patience(patience_of) {}

  std::shared_ptr<const SentFrame> frame_of(const RunFiles& run) {
    auto frame = std::make_shared<SentFrame>();
    frame->plain = fmt::format("data: {}\n\n", run.frame());
    frame->packed = pack_frame(packer, frame->plain);
    return frame;
  }

  Site site;
  const std::chrono::milliseconds patience;
  Packer packer;
  std::set<Session*> sessions;
  std::list<Session*> unproven;  ///< Sessions without the token, oldest first.
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Shared& shared) : stream_(std::move(socket)), shared_(shared) {
    shared_.sessions.insert(this);
    unproven_ = shared_.unproven.insert(shared_.unproven.end(), this);
  }
  ~Session() {
    prove();
    shared_.sessions.erase(this);
  }

  void start() { read(); }
  /// Closes the socket. The handlers fail, and the last of them destroys the session.
  void close() {
    prove();
    stream_.close();
  }
  const std::string& stream_of() const { return stream_of_; }

  /// Queues the latest frame and replaces one that was not sent yet.
  void push(std::shared_ptr<const SentFrame> frame) {
    next_ = std::move(frame);
    if (!sending_)
      send_next();
  }

 private:
  /// The session has shown the token.
  void prove() {
    if (unproven_)
      shared_.unproven.erase(*std::exchange(unproven_, std::nullopt));
  }

  /// Whether an authenticated session may stay. Some connections are reserved for clients that have
  /// yet to show the token.
  bool may_stay() {
    if (!unproven_)
      return true;
    if (shared_.sessions.size() - shared_.unproven.size() >=
        Server::kMostClients - Server::kMostUnproven)
      return false;
    prove();
    return true;
  }

  void read() {
    parser_.emplace();
    parser_->header_limit(8192);
    parser_->body_limit(1024);
    stream_.expires_after(shared_.patience);
    http::async_read(stream_,
                     buffer_,
                     *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error)
                         self->answer();
                     });
  }

  void answer() {
    const auto& message = parser_->get();
    HttpRequest request;
    request.method = std::string(message.method_string());
    request.target = std::string(message.target());
    for (const auto& field : message) {
      std::string name(field.name_string());
      for (char& c : name)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      request.headers[name] = std::string(field.value());
    }
    const bool head = message.method() == http::verb::head;
    HttpAnswer answer = shared_.site.answer(request);
    const bool stays = answer.status != 401 && may_stay();
    const bool keep = stays && message.keep_alive();
    if (!answer.stream_of.empty() && !stays) {
      answer = {};
      answer.status = 503;
      answer.type = "text/plain; charset=utf-8";
      answer.body = "too many clients follow this page; close some tabs and reload\n";
    }
    stream_of_ = answer.stream_of;
    answer_.emplace();
    answer_->version(11);
    answer_->result(static_cast<unsigned>(answer.status));
    set_headers(answer);
    if (!stream_of_.empty())
      return begin_stream();
    answer_->keep_alive(keep);
    answer_->body() = head ? std::string() : std::move(answer.body);
    answer_->prepare_payload();
    stream_.expires_after(shared_.patience * 6);
    http::async_write(
        stream_, *answer_, [self = shared_from_this(), keep](beast::error_code error, std::size_t) {
          if (!error && keep)
            self->read();
        });
  }

  void set_headers(const HttpAnswer& answer) {
    answer_->set(http::field::content_type, answer.type);
    answer_->set(http::field::cache_control, "no-store");
    answer_->set("X-Content-Type-Options", "nosniff");
    answer_->set("X-Frame-Options", "DENY");
    answer_->set("Referrer-Policy", "no-referrer");
    answer_->set("Cross-Origin-Resource-Policy", "same-origin");
    answer_->set("Content-Security-Policy",
                 "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                 "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    for (const auto& [name, value] : answer.headers)
      answer_->set(name, value);
  }

  /// Starts a stream, which has no length and ends with the connection.
  void begin_stream() {
    answer_->keep_alive(false);
    head_.emplace(*answer_);
    sending_ = true;
    stream_.expires_after(shared_.patience);
    packed_ = answer_->count(http::field::content_encoding) > 0;
    http::async_write_header(
        stream_, *head_, [self = shared_from_this()](beast::error_code error, std::size_t) {
          self->sending_ = false;
          if (error)
            return;
          self->watch_for_end();
          const RunFiles* run = self->shared_.site.find(self->stream_of_);
          if (run != nullptr)
            self->push(self->shared_.frame_of(*run));
        });
  }

  /// Reads until the client closes the connection; it sends no more data.
  void watch_for_end() {
    stream_.expires_never();
    stream_.socket().async_read_some(
        asio::buffer(scrap_), [self = shared_from_this()](beast::error_code error, std::size_t) {
          if (!error)
            return self->watch_for_end();
          self->stream_.close();
        });
  }

  void send_next() {
    if (!next_)
      return;
    sending_ = true;
    const auto frame = std::exchange(next_, nullptr);
    current_ = packed_ ? frame->packed : frame->plain;
    if (packed_ && !std::exchange(begun_, true))
      current_.insert(0, kGzipHeader);
    // Needs its own deadline: the stream's would also cancel the read.
    patience_.emplace(stream_.get_executor(), shared_.patience * 6);
    patience_->async_wait([weak = weak_from_this()](beast::error_code error) {
      if (const auto self = weak.lock(); self && !error)
        self->stream_.close();
    });
    asio::async_write(stream_.socket(),
                      asio::buffer(current_),
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        self->sending_ = false;
                        self->patience_.reset();
                        if (error)
                          return self->stream_.close();
                        self->send_next();
                      });
  }

  beast::tcp_stream stream_;
  Shared& shared_;
  beast::flat_buffer buffer_{16384};
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> answer_;
  std::optional<http::response_serializer<http::string_body>> head_;
  std::string stream_of_;
  std::shared_ptr<const SentFrame> next_;
  bool packed_ = false, begun_ = false;
  std::string current_;
  bool sending_ = false;
  std::optional<asio::steady_timer> patience_;
  std::array<char, 256> scrap_{};
  std::optional<std::list<Session*>::iterator> unproven_;
};

Error cannot(const ServerOptions& options, const beast::error_code& error) {
  return {ErrorCode::Unavailable,
          fmt::format("cannot serve the page on {}:{}: {}; choose another --address",
                      options.address,
                      options.port,
                      error.message())};
}

}  // namespace

struct Server::Loop {
  Loop(SiteOptions options, std::chrono::milliseconds patience)
      : shared(std::move(options), patience) {}

  void accept() {
    acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted)
        return;
      accepting = !error;  // retried at the next tick, when descriptors may be free again
      if (error)
        return;
      if (shared.unproven.size() >= kMostUnproven)
        shared.unproven.front()->close();
      std::make_shared<Session>(std::move(socket), shared)->start();
      accept();
    });
  }

  void tick() {
    std::vector<std::string> watched;
    for (const Session* session : shared.sessions) {
      if (!session->stream_of().empty())
        watched.push_back(session->stream_of());
    }
    for (const std::string& id : shared.site.update(watched)) {
      const auto frame = shared.frame_of(*shared.site.find(id));
      for (Session* session : shared.sessions) {
        if (session->stream_of() == id)
          session->push(frame);
      }
    }
    if (!std::exchange(accepting, true))
      accept();
    timer.expires_after(kPeriod);
    timer.async_wait([this](beast::error_code error) {
      if (!error)
        tick();
    });
  }

  Shared shared;  ///< Declared before `io`, whose destructor ends the sessions.
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer timer{io};
  bool accepting = true;
  std::promise<void> ended;
  std::thread thread;
};

Server::Server(std::unique_ptr<Loop> loop, std::string url)
    : loop_(std::move(loop)), url_(std::move(url)) {}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options) {
  beast::error_code error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error)
    return invalid_input(fmt::format(
        "expected an IP address such as 127.0.0.1 or 0.0.0.0, found {}", options.address));
  if (options.token.empty())
    options.token = make_secret();
  auto loop = std::make_unique<Loop>(SiteOptions{options.folders, options.token}, options.patience);
  tcp::endpoint endpoint(address, options.port);
  loop->acceptor.open(endpoint.protocol(), error);
  if (!error)
    loop->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error)
    loop->acceptor.bind(endpoint, error);
  if (!error)
    loop->acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error)
    return cannot(options, error);
  const std::string url =
      fmt::format("http://{}:{}/?token={}",
                  address.is_v6() ? "[" + options.address + "]" : options.address,
                  loop->acceptor.local_endpoint().port(),
                  options.token);
  loop->accept();
  loop->tick();
  loop->thread = std::thread([raw = loop.get()] {
    raw->io.run();
    raw->ended.set_value();
  });
  return std::unique_ptr<Server>(new Server(std::move(loop), url));
}

Server::~Server() {
  asio::post(loop_->io, [loop = loop_.get()] {
    beast::error_code ignored;
    loop->acceptor.close(ignored);
    loop->timer.cancel();
    loop->io.stop();
  });
  constexpr auto kLongestEnd = std::chrono::seconds(5);
  if (loop_->ended.get_future().wait_for(kLongestEnd) == std::future_status::ready) {
    loop_->thread.join();
    return;
  }
  loop_->thread.detach();
  static_cast<void>(loop_.release());  // the thread still uses it
}

Status parse_address(const std::string& text, ServerOptions& to) {
  std::string_view rest = text;
  if (const std::size_t colon = rest.rfind(':'); colon != std::string_view::npos) {
    std::string_view address = rest.substr(0, colon);
    if (address.starts_with('[') && address.ends_with(']'))
      address = address.substr(1, address.size() - 2);
    to.address = address == "localhost" ? "127.0.0.1" : std::string(address);
    rest.remove_prefix(colon + 1);
  }
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), to.port);
  if (rest.empty() || error != std::errc() || end != rest.data() + rest.size()) {
    return invalid_input(fmt::format(
        "--address: expected a port or ADDRESS:PORT, such as 8080 or 0.0.0.0:8080, found {}",
        text));
  }
  return {};
}

}  // namespace temper::cli
