#include "actors/asio/router.hpp"

#include "actors/asio/asio.hpp"
#include "actors/transport/wake_up.hpp"
#include "core/thread_annotations.hpp"

#include <atomic>
#include <deque>
#include <thread>

namespace temper::actors {
namespace {

/// Messages handled per iteration of the loop, so that timers and other sockets are not starved.
constexpr int kBatch = 256;
/// Bytes waiting for the loop beyond which nothing more is read; senders then have to wait.
constexpr std::size_t kMostWaiting = std::size_t{256} << 20;
/// A loop that is silent for this long hangs; its workers stop getting heartbeats.
constexpr Duration kLongestTurn = std::chrono::minutes(10);

/// A command from the loop to the thread that owns the socket.
struct Command {
  enum class Kind { Admit, Forget, Send, Drop } kind;
  PeerId peer;
  OutgoingMessage message{};
  PeerLivenessPtr liveness{};
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

  // --- On the thread of the event loop

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

  void enqueue(Command command) {
    bool first = false;
    {
      const MutexLock lock(mutex);
      first = commands.empty();
      commands.push_back(std::move(command));
    }
    if (first)
      wake.notify();
  }

  /// Passes received messages to the callbacks, one batch per iteration of the loop.
  void deliver() {
    deliver_heartbeats();
    for (int i = 0; i < kBatch && !closed; ++i) {
      std::optional<Exchange::Arrival> next;
      std::vector<Exchange::BrokenPeer> broken;
      bool resume = false;
      {
        const MutexLock lock(mutex);
        if (arrived.empty()) {
          // Messages of a peer are delivered before the report that it is lost.
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
        liveness.erase(b.peer);
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

  void deliver_heartbeats() {
    std::map<PeerId, IncomingMessage> latest;
    {
      const MutexLock lock(mutex);
      latest.swap(heartbeats);
    }
    for (const auto& [peer, heartbeat] : latest) {
      if (!closed)
        events.on_heartbeat(peer, heartbeat);
    }
  }

  void post_delivery() {
    boost::asio::post(io, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && !self->closed)
        self->deliver();
    });
  }

  // --- On the exchange thread, which owns the socket

  void serve() {
    for (bool last = false; !last;) {
      last = run_commands();
      const auto reading = paused() ? Exchange::Reading::Paused : Exchange::Reading::On;
      Exchange::TurnResult result = exchange.turn(
          reading, loop_lives() ? Exchange::Heartbeats::On : Exchange::Heartbeats::Off);
      const bool more = result.more;
      hand_over(std::move(result));
      if (more || last)
        continue;
      if (Status status = exchange.wait(reading, wake.fd()); !status)
        log.error("socket failed", {{"endpoint", endpoint}, {"why", status.error().context}});
    }
  }

  /// Returns true after the last command.
  bool run_commands() {
    wake.clear();  // Cleared first, so that a command added meanwhile notifies again.
    std::vector<Command> taken;
    bool last = false;
    {
      const MutexLock lock(mutex);
      taken.swap(commands);
      last = closing;
    }
    for (Command& command : taken) {
      switch (command.kind) {
        case Command::Kind::Admit:
          exchange.admit(command.peer, std::move(command.liveness));
          break;
        case Command::Kind::Forget:
          exchange.forget(command.peer);
          break;
        case Command::Kind::Send:
          exchange.send(command.peer, std::move(command.message));
          break;
        case Command::Kind::Drop:
          exchange.drop(command.peer, command.why);
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

  void hand_over(Exchange::TurnResult result) {
    bool post = false;
    {
      const MutexLock lock(mutex);
      stats = exchange.stats();
      for (Exchange::Arrival& a : result.arrived) {
        waiting += a.message.body().size();
        arrived.push_back(std::move(a));
      }
      for (Exchange::Arrival& a : result.heartbeats) {
        if (events.on_heartbeat)
          heartbeats.insert_or_assign(a.peer, std::move(a.message));
      }
      for (Exchange::BrokenPeer& b : result.broken) {
        heartbeats.erase(b.peer);
        ended.push_back(std::move(b));
      }
      post = !posted && !(arrived.empty() && heartbeats.empty() && ended.empty());
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
  Exchange exchange;  ///< Used only by the exchange thread once it runs.
  const std::string endpoint;
  WakeUp wake;
  std::thread thread;
  std::atomic<std::int64_t> turned{0};

  std::map<PeerId, PeerLivenessPtr> liveness;  ///< Used only by the loop's thread.
  bool closed = false;                         ///< Used only by the loop's thread.

  mutable Mutex mutex;
  std::vector<Command> commands TEMPER_GUARDED_BY(mutex);
  std::deque<Exchange::Arrival> arrived TEMPER_GUARDED_BY(mutex);
  std::map<PeerId, IncomingMessage> heartbeats TEMPER_GUARDED_BY(mutex);  ///< The latest of each.
  std::vector<Exchange::BrokenPeer> ended TEMPER_GUARDED_BY(mutex);
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
  PeerLivenessPtr& liveness = impl_->liveness[peer];
  if (liveness == nullptr)
    liveness = std::make_shared<PeerLiveness>(impl_->clock.now());
  impl_->enqueue({.kind = Command::Kind::Admit, .peer = peer, .liveness = liveness});
}

void AsioRouter::forget(const PeerId& peer) {
  if (impl_->liveness.erase(peer) > 0)
    impl_->enqueue({.kind = Command::Kind::Forget, .peer = peer});
}

void AsioRouter::send(const PeerId& peer, OutgoingMessage message) {
  impl_->enqueue({.kind = Command::Kind::Send, .peer = peer, .message = std::move(message)});
}

void AsioRouter::drop(const PeerId& peer, std::string_view why) {
  impl_->enqueue({.kind = Command::Kind::Drop, .peer = peer, .why = std::string(why)});
}

Duration AsioRouter::silence_of(const PeerId& peer) const {
  const auto it = impl_->liveness.find(peer);
  if (it == impl_->liveness.end())
    return Duration::zero();
  const Time last(Duration(it->second->heard.load(std::memory_order_relaxed)));
  return std::max(Duration::zero(), impl_->clock.now() - last);
}

std::optional<ClockReading> AsioRouter::clock_of(const PeerId& peer, const RealClock& ours) const {
  const auto it = impl_->liveness.find(peer);
  if (it == impl_->liveness.end())
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
