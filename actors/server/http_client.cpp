// The only file that includes Boost.Beast: it takes 20 seconds to compile.
#include "actors/server/http_client.hpp"

#include "core/thread_annotations.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
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
using Clock = std::chrono::steady_clock;

/// Servers close a connection that was idle for 5 s (uvicorn's default).
constexpr auto kKeptFor = std::chrono::seconds(3);
constexpr std::uint64_t kLargestBody = std::uint64_t{1} << 30;

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
    Clock::time_point due;
    std::promise<HttpAnswer>* promise = nullptr;  ///< Of call().
    bool repeated = false;
  };

  Ticket next_ticket() { return ++last_; }
  void submit(Job job) {
    net::post(context_, [this, job = std::move(job)]() mutable { begin(std::move(job)); });
  }

  std::vector<Arrived> take(Duration patience) {
    std::unique_lock lock(mutex_);
    if (arrived_.empty() && patience > Duration::zero())
      changed_.wait_for(lock, patience, [this] { return !arrived_.empty(); });
    return std::exchange(arrived_, {});
  }

  /// On the other thread; returns when it is done.
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
  /// One connection and, while there is one, its exchange. Kept alive by its handlers.
  struct Connection : std::enable_shared_from_this<Connection> {
    explicit Connection(net::io_context& context) : stream(context) {}
    beast::tcp_stream stream;
    beast::flat_buffer buffer;
    http::request<http::string_body> request;
    std::optional<http::response_parser<http::string_body>> parser;
    std::optional<Job> job;
    Clock::time_point idle_since;
    bool used_before = false;
    std::list<std::shared_ptr<Connection>>::iterator place;  ///< In busy_.
  };
  using Shared = std::shared_ptr<Connection>;

  void begin(Job job) {
    if (busy_.size() >= most_) {
      waiting_.push_back(std::move(job));
      return;
    }
    while (!idle_.empty() && Clock::now() - idle_.back()->idle_since > kKeptFor)
      idle_.clear();  // The last is the youngest.
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
    c->stream.expires_at(c->job->due);
    if (c->used_before)
      return write(c);
    connect(c);
  }

  void connect(const Shared& c) {
    if (!addresses_) {
      resolver_.emplace(context_);
      beast::error_code failed;
      addresses_ = resolver_->resolve(url_.host, std::to_string(url_.port), failed);
      if (failed) {
        addresses_.reset();
        return end(c, "cannot find the host", failed);
      }
    }
    c->stream.async_connect(*addresses_, [this, c](beast::error_code failed, const auto&) {
      if (failed) {
        addresses_.reset();  // It may have moved.
        return end(c, "cannot connect", failed);
      }
      beast::error_code ignored;
      c->stream.socket().set_option(tcp::no_delay(true), ignored);
      write(c);
    });
  }

  void write(const Shared& c) {
    if (!c->job)
      return;
    HttpRequest& wanted = c->job->request;
    c->request = {};
    c->request.version(11);
    c->request.method_string(wanted.method);
    c->request.target(url_.prefix + wanted.target);
    c->request.set(http::field::host, fmt::format("{}:{}", url_.host, url_.port));
    if (!key_.empty())
      c->request.set(http::field::authorization, "Bearer " + key_);
    if (!wanted.body.empty())
      c->request.set(http::field::content_type, "application/json");
    c->request.body() = wanted.body;
    c->request.prepare_payload();
    http::async_write(c->stream, c->request, [this, c](beast::error_code failed, std::size_t) {
      if (failed)
        return stale(c) ? repeat(c) : end(c, "cannot send", failed);
      read(c);
    });
  }

  void read(const Shared& c) {
    c->parser.emplace();
    c->parser->body_limit(kLargestBody);
    http::async_read(
        c->stream, c->buffer, *c->parser, [this, c](beast::error_code failed, std::size_t) {
          if (failed) {
            const bool nothing = !c->parser->got_some() && c->buffer.size() == 0;
            return nothing && stale(c) && failed != beast::error::timeout
                       ? repeat(c)
                       : end(c, "no whole answer", failed);
          }
          finish(c);
        });
  }

  /// What failed may be only that the server had closed the connection meanwhile.
  static bool stale(const Shared& c) { return c->job && c->used_before && !c->job->repeated; }

  void repeat(const Shared& c) {
    Job job = std::move(*c->job);
    job.repeated = true;
    retire(c);
    begin(std::move(job));
  }

  void finish(const Shared& c) {
    if (!c->job)
      return;
    auto answer = c->parser->release();
    Job job = std::move(*c->job);
    deliver(job, {static_cast<int>(answer.result_int()), std::move(answer.body()), {}});
    const bool keep = answer.keep_alive();
    c->job.reset();
    c->parser.reset();
    busy_.erase(c->place);
    if (keep) {
      c->used_before = true;
      c->idle_since = Clock::now();
      c->stream.expires_never();
      idle_.push_back(c);
    }
    go_on();
  }

  void end(const Shared& c, std::string_view what, beast::error_code why) {
    if (!c->job)
      return;  // Dropped.
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
    c->stream.socket().close(ignored);
  }

  void go_on() {
    if (waiting_.empty() || busy_.size() >= most_)
      return;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    begin(std::move(job));
  }

  void drop_awaited() {
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
  std::optional<tcp::resolver> resolver_;
  std::optional<tcp::resolver::results_type> addresses_;
  std::list<Shared> busy_;
  std::vector<Shared> idle_;
  std::deque<Job> waiting_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Arrived> arrived_;  ///< Under mutex_.
  std::thread thread_;            ///< Last: the rest is there when it begins.
};

HttpClient::HttpClient(Url url, std::size_t connections, std::string key)
    : io_(std::make_unique<Io>(std::move(url), connections, std::move(key))) {}
HttpClient::~HttpClient() = default;

HttpClient::Ticket HttpClient::send(HttpRequest request) {
  const Ticket ticket = io_->next_ticket();
  const auto due = Clock::now() + request.deadline;
  io_->submit({ticket, std::move(request), due, nullptr, false});
  return ticket;
}

std::vector<HttpClient::Arrived> HttpClient::take(Duration patience) {
  return io_->take(patience);
}

HttpAnswer HttpClient::call(HttpRequest request) {
  std::promise<HttpAnswer> promise;
  auto answer = promise.get_future();
  const auto due = Clock::now() + request.deadline;
  io_->submit({io_->next_ticket(), std::move(request), due, &promise, false});
  return answer.get();
}

void HttpClient::drop_all() {
  io_->drop_all();
}

}  // namespace temper::actors
