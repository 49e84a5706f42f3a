// The only file that includes Boost.Beast: it takes 20 seconds to compile.
#include "actors/server/http_client.hpp"

#include "core/thread_annotations.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace temper::actors {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace net = boost::asio;
using tcp = net::ip::tcp;
using SteadyClock = std::chrono::steady_clock;

/// How long idle connections are kept; servers close them after 5 s (uvicorn's default).
constexpr auto kKeptFor = std::chrono::seconds(3);
constexpr std::size_t kScratch = std::size_t{1} << 18;
/// Limit for header fields, chunk extensions and trailers, in bytes.
constexpr std::size_t kLargestUnparsed = std::size_t{1} << 16;
/// Most bytes received per byte of the body; one-byte chunks need six.
constexpr std::uint64_t kMostPerByte = 8;
/// Bytes read from one connection before other connections and deadlines are handled.
constexpr std::size_t kReadPerTurn = 4 * kScratch;
/// Resolution of deadlines.
constexpr auto kDeadlineStep = std::chrono::milliseconds(20);

}  // namespace

class HttpClient::Io {
 public:
  Io(Url url, std::size_t connections, std::string key)
      : url_(std::move(url)),
        most_(connections),
        key_(std::move(key)),
        guard_(net::make_work_guard(context_)),
        thread_([this] { context_.run(); }) {}

  ~Io() {
    net::post(context_, [this] {
      guard_.reset();
      context_.stop();
    });
    thread_.join();
  }

  struct Job {
    Ticket ticket = 0;
    HttpRequest request;
    SteadyClock::time_point due;
    std::promise<HttpAnswer>* promise = nullptr;  ///< Set for call().
    bool repeated = false;
  };

  Ticket next_ticket() { return ++last_; }
  void submit(Job job) {
    {
      const std::lock_guard lock(mutex_);
      submitted_.push_back(std::move(job));
      if (submitted_.size() > 1)
        return;  // The other thread was notified already.
    }
    net::post(context_, [this] {
      for (Job& next : take_submitted())
        begin(std::move(next));
    });
  }

  std::vector<Arrived> take(Duration patience) {
    std::unique_lock lock(mutex_);
    if (arrived_.empty() && patience > Duration::zero())
      changed_.wait_for(lock, patience, [this] { return !arrived_.empty(); });
    return std::exchange(arrived_, {});
  }

  /// Called on the other thread; returns when done.
  void drop_all() {
    std::promise<void> done;
    net::post(context_, [&] {
      drop_awaited();
      done.set_value();
    });
    done.get_future().wait();
    const std::lock_guard lock(mutex_);
    arrived_.clear();
  }

 private:
  using Socket = net::basic_stream_socket<tcp, net::io_context::executor_type>;

  /// One connection and its current request, if any. Kept alive by its handlers.
  struct Connection : std::enable_shared_from_this<Connection> {
    explicit Connection(net::io_context& context) : socket(context) {}
    Socket socket;
    std::string out;       ///< The request as sent.
    std::size_t sent = 0;  ///< Number of bytes of `out` that were sent.
    std::uint64_t received = 0;
    std::string rest;  ///< Received bytes that the parser needs more input for.
    std::optional<http::response_parser<http::string_body>> parser;
    std::optional<Job> job;
    const char* doing = "cannot connect";  ///< Error text for a failure in the current state.
    bool got_some = false;
    SteadyClock::time_point idle_since;
    bool used_before = false;
    std::list<std::shared_ptr<Connection>>::iterator place;  ///< Position in busy_.
  };
  using Shared = std::shared_ptr<Connection>;

  std::vector<Job> take_submitted() {
    const std::lock_guard lock(mutex_);
    return std::exchange(submitted_, {});
  }

  void begin(Job job) {
    if (busy_.size() >= most_) {
      waiting_.push_back(std::move(job));
      return;
    }
    while (!idle_.empty() && SteadyClock::now() - idle_.back()->idle_since > kKeptFor)
      idle_.clear();  // The last one is the most recent.
    Shared c;
    if (idle_.empty() || job.repeated) {
      c = std::make_shared<Connection>(context_);
    } else {
      c = std::move(idle_.back());
      idle_.pop_back();
    }
    busy_.push_front(c);
    c->place = busy_.begin();
    c->job = std::move(job);
    watch_deadlines();
    if (c->used_before)
      return begin_write(c);
    connect(c);
  }

  /// One timer for all connections: one per request would cost more than the request.
  void watch_deadlines() {
    if (watching_)
      return;
    watching_ = true;
    sweep_.expires_after(kDeadlineStep);
    sweep_.async_wait([this](beast::error_code) {
      watching_ = false;
      const auto busy = busy_;
      const SteadyClock::time_point now = SteadyClock::now();
      for (const Shared& c : busy) {
        if (c->job && c->job->due <= now)
          end(c, c->doing, beast::error::timeout);
      }
      if (!busy_.empty())
        watch_deadlines();
    });
  }

  void connect(const Shared& c) {
    c->doing = "cannot connect";
    if (!addresses_) {
      resolver_.emplace(context_);
      beast::error_code failed;
      addresses_ = resolver_->resolve(url_.host, std::to_string(url_.port), failed);
      if (failed) {
        addresses_.reset();
        return end(c, "cannot find the host", failed);
      }
    }
    net::async_connect(c->socket, *addresses_, [this, c](beast::error_code failed, const auto&) {
      if (!c->job)
        return;
      if (failed) {
        addresses_.reset();  // The address may have changed.
        return end(c, c->doing, failed);
      }
      beast::error_code ignored;
      c->socket.set_option(tcp::no_delay(true), ignored);
      c->socket.non_blocking(true, ignored);
      begin_write(c);
    });
  }

  void begin_write(const Shared& c) {
    c->doing = "cannot send";
    const HttpRequest& wanted = c->job->request;
    c->out.clear();
    c->sent = 0;
    fmt::format_to(std::back_inserter(c->out),
                   "{} {}{} HTTP/1.1\r\nHost: {}\r\n",
                   wanted.method,
                   url_.prefix,
                   wanted.target,
                   authority_of(url_));
    if (!key_.empty())
      fmt::format_to(std::back_inserter(c->out), "Authorization: Bearer {}\r\n", key_);
    if (!wanted.body.empty())
      c->out += "Content-Type: application/json\r\n";
    if (!wanted.body.empty() || wanted.method == "POST")
      fmt::format_to(std::back_inserter(c->out), "Content-Length: {}\r\n", wanted.body.size());
    c->out += "\r\n";
    c->out += wanted.body;
    write(c);
  }

  void write(const Shared& c) {
    while (c->sent < c->out.size()) {
      beast::error_code failed;
      c->sent += c->socket.write_some(net::buffer(c->out) + c->sent, failed);
      if (failed == net::error::would_block) {
        return c->socket.async_wait(Socket::wait_write, [this, c](beast::error_code stopped) {
          if (c->job && !stopped)
            write(c);
        });
      }
      if (failed)
        return may_be_stale(c) ? repeat(c) : end(c, c->doing, failed);
    }
    c->doing = "incomplete response";
    c->parser.emplace();
    c->parser->header_limit(kLargestUnparsed);
    c->parser->body_limit(c->job->request.largest_answer);
    c->parser->eager(true);
    c->rest.clear();
    c->received = 0;
    c->got_some = false;
    await_answer(c);
  }

  void await_answer(const Shared& c) {
    c->socket.async_wait(Socket::wait_read, [this, c](beast::error_code stopped) {
      if (c->job && !stopped)
        read(c);
    });
  }

  /// Reads into the buffer shared by all connections, and from there into the body.
  void read(const Shared& c) {
    for (std::size_t taken = 0; taken < kReadPerTurn;) {
      beast::error_code failed;
      const std::size_t size = c->socket.read_some(net::buffer(scratch_), failed);
      if (failed == net::error::would_block)
        return await_answer(c);
      if (failed == net::error::eof && c->got_some) {
        beast::error_code incomplete;
        c->parser->put_eof(incomplete);
        return incomplete ? end(c, c->doing, failed) : finish(c, KeepConnection::No);
      }
      if (failed)
        return !c->got_some && may_be_stale(c) ? repeat(c) : end(c, c->doing, failed);
      c->got_some = true;
      taken += size;
      c->received += size;
      if (c->received / kMostPerByte > c->job->request.largest_answer + kLargestUnparsed)
        return end(c, c->doing, http::error::body_limit);
      if (const auto wrong = parse(c, {scratch_.data(), size}))
        return end(c, c->doing, *wrong);
      if (c->parser->is_done())
        return finish(c, c->rest.empty() ? KeepConnection::Yes : KeepConnection::No);
      if (size < scratch_.size())
        return await_answer(c);
    }
    net::post(context_, [this, c] {
      if (c->job)
        read(c);
    });
  }

  std::optional<beast::error_code> parse(const Shared& c, std::string_view piece) {
    if (!c->rest.empty()) {
      c->rest += piece;
      piece = c->rest;
    }
    while (!piece.empty() && !c->parser->is_done()) {
      beast::error_code wrong;
      const std::size_t used = c->parser->put(net::buffer(piece), wrong);
      piece.remove_prefix(used);
      if (wrong == http::error::need_more)
        break;
      if (wrong)
        return wrong;
      // Beast 1.74 continues with a response whose announced length exceeds the limit.
      if (c->parser->is_header_done() &&
          c->parser->content_length().value_or(0) > c->job->request.largest_answer)
        return http::error::body_limit;
    }
    if (piece.size() > kLargestUnparsed && !c->parser->is_done())
      return http::error::header_limit;
    c->rest = std::string(piece);
    return std::nullopt;
  }

  /// True if the failure may only mean that the server had closed an idle connection.
  static bool may_be_stale(const Shared& c) {
    return c->job && c->used_before && !c->job->repeated;
  }

  void repeat(const Shared& c) {
    Job job = std::move(*c->job);
    job.repeated = true;
    retire(c);
    begin(std::move(job));
  }

  enum class KeepConnection { No, Yes };
  void finish(const Shared& c, KeepConnection keep) {
    auto answer = c->parser->release();
    Job job = std::move(*c->job);
    deliver(job, {static_cast<int>(answer.result_int()), std::move(answer.body()), {}});
    if (keep == KeepConnection::No || !answer.keep_alive()) {
      retire(c);
      return go_on();
    }
    c->job.reset();
    c->parser.reset();
    busy_.erase(c->place);
    c->used_before = true;
    c->idle_since = SteadyClock::now();
    idle_.push_back(c);
    go_on();
  }

  void end(const Shared& c, std::string_view what, beast::error_code why) {
    if (!c->job)
      return;  // The job was dropped.
    Job job = std::move(*c->job);
    retire(c);
    const std::string reason = why == beast::error::timeout ? "the deadline passed" : why.message();
    deliver(job,
            {0, {}, fmt::format("{}: {} {}: {}", text_of(url_), job.request.target, what, reason)});
    go_on();
  }

  void retire(const Shared& c) {
    c->job.reset();
    busy_.erase(c->place);
    beast::error_code ignored;
    c->socket.close(ignored);
  }

  void go_on() {
    if (waiting_.empty() || busy_.size() >= most_)
      return;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    begin(std::move(job));
  }

  void drop_awaited() {
    for (Job& job : take_submitted()) {
      if (job.promise != nullptr)
        begin(std::move(job));
    }
    std::erase_if(waiting_, [](const Job& job) { return job.promise == nullptr; });
    const auto busy = busy_;
    for (const Shared& c : busy) {
      if (c->job && c->job->promise == nullptr)
        retire(c);
    }
  }

  void deliver(const Job& job, HttpAnswer answer) {
    if (job.promise != nullptr)
      return job.promise->set_value(std::move(answer));
    const std::lock_guard lock(mutex_);
    arrived_.push_back({job.ticket, std::move(answer)});
    if (arrived_.size() == 1)
      changed_.notify_one();
  }

  const Url url_;
  const std::size_t most_;
  const std::string key_;
  Ticket last_ = 0;

  net::io_context context_{1};
  net::executor_work_guard<net::io_context::executor_type> guard_;
  net::steady_timer sweep_{context_};
  bool watching_ = false;
  std::vector<char> scratch_ = std::vector<char>(kScratch);
  std::optional<tcp::resolver> resolver_;
  std::optional<tcp::resolver::results_type> addresses_;
  std::list<Shared> busy_;
  std::vector<Shared> idle_;
  std::deque<Job> waiting_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Arrived> arrived_;  ///< Under mutex_.
  std::vector<Job> submitted_;    ///< Under mutex_.
  std::thread thread_;            ///< Declared last, so that it starts after all other members are
                                  ///< initialized.
};

HttpClient::HttpClient(Url url, std::size_t connections, std::string key)
    : io_(std::make_unique<Io>(std::move(url), connections, std::move(key))) {}
HttpClient::~HttpClient() = default;

HttpClient::Ticket HttpClient::send(HttpRequest request) {
  const Ticket ticket = io_->next_ticket();
  const auto due = SteadyClock::now() + request.deadline;
  io_->submit({ticket, std::move(request), due, nullptr, false});
  return ticket;
}

std::vector<HttpClient::Arrived> HttpClient::take(Duration patience) {
  return io_->take(patience);
}

HttpAnswer HttpClient::call(HttpRequest request) {
  std::promise<HttpAnswer> promise;
  auto answer = promise.get_future();
  const auto due = SteadyClock::now() + request.deadline;
  io_->submit({io_->next_ticket(), std::move(request), due, &promise, false});
  return answer.get();
}

void HttpClient::drop_all() {
  io_->drop_all();
}

}  // namespace temper::actors
