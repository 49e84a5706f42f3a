#include "actors/asio/router.hpp"

#include "actors/asio/asio.hpp"
#include "actors/transport/wake_up.hpp"
#include "core/thread_annotations.hpp"

#include <atomic>
#include <deque>
#include <thread>

namespace temper::actors {
namespace {

/// Messages handled per turn of the loop, so that timers and other sockets get theirs.
constexpr int kBatch = 256;
/// Where so much waits for the loop, nothing more is read: senders wait in their turn.
constexpr std::size_t kMostWaiting = std::size_t{256} << 20;
/// A loop that did not turn for so long hangs: workers are let go.
constexpr Duration kLongestTurn = std::chrono::minutes(10);

/// What the loop wants of the thread that has the socket.
struct Wish {
  enum class Kind { Admit, Forget, Send, Drop } kind;
  PeerId peer;
  OutgoingMessage message{};
  PeerSignsPtr signs{};
  std::string why{};
};

}  // namespace

struct AsioRouter::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& loop,
       RouterSocket socket,
       Exchange::Options options,
       Events callbacks,
       WakeUp wake_up,
       const Log& l)
      : io(loop),
        work(loop.get_executor()),
        events(std::move(callbacks)),
        log(l),
        exchange(std::move(socket), options, clock),
        endpoint(exchange.endpoint()),
        wake(std::move(wake_up)) {}

  // --- On the thread of the loop

  void start() {
    turned = clock.now().time_since_epoch().count();
    thread = std::thread([this] { serve(); });
  }

  void close() {
    if (!thread.joinable())
      return;
    {
      const MutexLock lock(mutex);
      closing = true;
    }
    wake.notify();
    thread.join();
    closed = true;
    work.reset();
  }

  void want(Wish wish) {
    bool first = false;
    {
      const MutexLock lock(mutex);
      first = wishes.empty();
      wishes.push_back(std::move(wish));
    }
    if (first)
      wake.notify();
  }

  /// What arrived goes to the callbacks, a batch per turn of the loop.
  void deliver() {
    for (int i = 0; i < kBatch && !closed; ++i) {
      std::optional<Exchange::Arrived> next;
      std::vector<Exchange::Broken> broken;
      bool resume = false;
      {
        const MutexLock lock(mutex);
        if (arrived.empty()) {
          // What a peer said comes before word of its end.
          broken.swap(ended);
          posted = false;
        } else {
          next = std::move(arrived.front());
          arrived.pop_front();
          resume = waiting >= kMostWaiting;
          waiting -= next->message.body().size();
          resume = resume && waiting < kMostWaiting;
        }
      }
      if (resume)
        wake.notify();
      for (const auto& b : broken) {
        signs.erase(b.peer);
        if (!closed)
          events.on_broken(b.peer, b.why);
      }
      if (!next)
        return;
      if (events.on_hello && next->message.is<Hello>()) {
        events.on_hello(next->peer, next->user, next->message);
      } else {
        events.on_message(next->peer, next->message);
      }
    }
    post_delivery();
  }

  void post_delivery() {
    boost::asio::post(io, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && !self->closed)
        self->deliver();
    });
  }

  // --- On the thread that has the socket

  void serve() {
    for (bool last = false; !last;) {
      last = grant_wishes();
      const auto reading = paused() ? Exchange::Reading::Paused : Exchange::Reading::On;
      Exchange::Moved moved = exchange.turn(
          reading, loop_lives() ? Exchange::Heartbeats::On : Exchange::Heartbeats::Off);
      const bool more = moved.more;
      hand_over(std::move(moved));
      if (more || last)
        continue;
      if (Status status = exchange.wait(reading, wake.fd()); !status)
        log.error("socket failed", {{"endpoint", endpoint}, {"why", status.error().context}});
    }
  }

  /// True: these were the last.
  bool grant_wishes() {
    wake.clear();  // Before the look: a wish after it notifies again.
    std::vector<Wish> granted;
    bool last = false;
    {
      const MutexLock lock(mutex);
      granted.swap(wishes);
      last = closing;
    }
    for (Wish& wish : granted) {
      switch (wish.kind) {
        case Wish::Kind::Admit:
          exchange.admit(wish.peer, std::move(wish.signs));
          break;
        case Wish::Kind::Forget:
          exchange.forget(wish.peer);
          break;
        case Wish::Kind::Send:
          exchange.send(wish.peer, std::move(wish.message));
          break;
        case Wish::Kind::Drop:
          exchange.drop(wish.peer, wish.why);
          break;
      }
    }
    return last;
  }

  bool paused() {
    const MutexLock lock(mutex);
    return waiting >= kMostWaiting;
  }

  bool loop_lives() const {
    return clock.now() - Time(Duration(turned.load(std::memory_order_relaxed))) < kLongestTurn;
  }

  void hand_over(Exchange::Moved moved) {
    bool post = false;
    {
      const MutexLock lock(mutex);
      stats = exchange.stats();
      for (Exchange::Arrived& a : moved.arrived) {
        waiting += a.message.body().size();
        arrived.push_back(std::move(a));
      }
      for (Exchange::Broken& b : moved.broken)
        ended.push_back(std::move(b));
      post = !posted && !(arrived.empty() && ended.empty());
      posted = posted || post;
    }
    if (post)
      post_delivery();
  }

  boost::asio::io_context& io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  const Events events;
  const Log log;
  const RealClock clock{};
  Exchange exchange;  ///< Of its thread, once that runs.
  const std::string endpoint;
  WakeUp wake;
  std::thread thread;
  std::atomic<std::int64_t> turned{0};

  std::map<PeerId, PeerSignsPtr> signs;  ///< Of the loop's thread.
  bool closed = false;                   ///< Of the loop's thread.

  mutable Mutex mutex;
  std::vector<Wish> wishes TEMPER_GUARDED_BY(mutex);
  std::deque<Exchange::Arrived> arrived TEMPER_GUARDED_BY(mutex);
  std::vector<Exchange::Broken> ended TEMPER_GUARDED_BY(mutex);
  std::size_t waiting TEMPER_GUARDED_BY(mutex) = 0;  ///< Bytes in `arrived`.
  TransportStats stats TEMPER_GUARDED_BY(mutex);
  bool posted TEMPER_GUARDED_BY(mutex) = false;
  bool closing TEMPER_GUARDED_BY(mutex) = false;
};

AsioRouter::AsioRouter(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<AsioRouter>> AsioRouter::create(boost::asio::io_context& io,
                                                       RouterSocket socket,
                                                       Exchange::Options options,
                                                       Events events,
                                                       const Log& log) {
  TEMPER_TRY(WakeUp wake, WakeUp::create());
  auto impl = std::make_shared<Impl>(
      io, std::move(socket), options, std::move(events), std::move(wake), log);
  impl->start();
  return std::unique_ptr<AsioRouter>(new AsioRouter(std::move(impl)));
}

AsioRouter::~AsioRouter() {
  impl_->close();
}

void AsioRouter::let_in(const std::string& open_key,
                        const std::string& name,
                        std::size_t connections) {
  impl_->exchange.let_in(open_key, name, connections);
}

void AsioRouter::keep_out(const std::string& open_key) {
  impl_->exchange.keep_out(open_key);
}

void AsioRouter::admit(const PeerId& peer) {
  PeerSignsPtr& signs = impl_->signs[peer];
  if (signs == nullptr)
    signs = std::make_shared<PeerSigns>(impl_->clock.now());
  impl_->want({.kind = Wish::Kind::Admit, .peer = peer, .signs = signs});
}

void AsioRouter::forget(const PeerId& peer) {
  if (impl_->signs.erase(peer) > 0)
    impl_->want({.kind = Wish::Kind::Forget, .peer = peer});
}

void AsioRouter::send(const PeerId& peer, OutgoingMessage message) {
  impl_->want({.kind = Wish::Kind::Send, .peer = peer, .message = std::move(message)});
}

void AsioRouter::drop(const PeerId& peer, std::string_view why) {
  impl_->want({.kind = Wish::Kind::Drop, .peer = peer, .why = std::string(why)});
}

Duration AsioRouter::silence_of(const PeerId& peer) const {
  const auto it = impl_->signs.find(peer);
  if (it == impl_->signs.end())
    return Duration::zero();
  const Time last(Duration(it->second->heard.load(std::memory_order_relaxed)));
  return std::max(Duration::zero(), impl_->clock.now() - last);
}

std::optional<ClockReading> AsioRouter::clock_of(const PeerId& peer, const RealClock& ours) const {
  const auto it = impl_->signs.find(peer);
  if (it == impl_->signs.end())
    return std::nullopt;
  auto reading = it->second->clock.at(impl_->clock.now());
  if (reading)
    reading->ahead -= Duration(impl_->clock.epoch_monotonic_ns() - ours.epoch_monotonic_ns());
  return reading;
}

void AsioRouter::turns() {
  impl_->turned.store(impl_->clock.now().time_since_epoch().count(), std::memory_order_relaxed);
}

const std::string& AsioRouter::endpoint() const {
  return impl_->endpoint;
}

TransportStats AsioRouter::stats() const {
  const MutexLock lock(impl_->mutex);
  return impl_->stats;
}

}  // namespace temper::actors
