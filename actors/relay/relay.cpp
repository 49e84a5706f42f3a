#include "actors/relay/relay.hpp"

#include "actors/relay/relay_loop.hpp"
#include "actors/transport/wake_up.hpp"
#include "core/thread_annotations.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <deque>
#include <thread>
#include <utility>

namespace temper::actors {
namespace {

/// Interval of heartbeats to the workers that it feeds: half the smallest
/// `transport.relay_timeout`.
constexpr Duration kHeartbeat = std::chrono::milliseconds(500);
constexpr std::string_view kTcp = "tcp://";

/// The local address of packets to `orchestrator`. Sends no packet.
Result<std::string> local_address_toward(const std::string& orchestrator) {
  const std::size_t colon = orchestrator.rfind(':');
  if (!orchestrator.starts_with(kTcp) || colon < kTcp.size())
    return invalid_input(
        fmt::format("expected an endpoint tcp://HOST:PORT, found {}", orchestrator));
  const std::string host = orchestrator.substr(kTcp.size(), colon - kTcp.size());
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error =
          ::getaddrinfo(host.c_str(), orchestrator.c_str() + colon + 1, &wanted, &found);
      error != 0)
    return invalid_input(fmt::format("{}: {}", orchestrator, ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  const FileDescriptor probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (!probe.is_open() || ::connect(probe.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return io_error("no address of this host reaches " + orchestrator, errno);
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &own.sin_addr, text.data(), text.size());
  return std::string(text.data());
}

}  // namespace

struct Relay::Impl {
  Impl(RelayLoop l, RelayAddress a, WakeUp w, FileDescriptor e, const Log& g)
      : log(g),
        address(std::move(a)),
        wake(std::move(w)),
        events(std::move(e)),
        loop(std::move(l)) {
    watch(wake.fd());
  }

  void watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    // The descriptor may be registered already; a closed one was removed automatically.
    static_cast<void>(::epoll_ctl(events.get(), EPOLL_CTL_ADD, fd, &event));
  }

  void push(IncomingMessage message) {
    {
      const MutexLock lock(mutex);
      arrived.push_back(std::move(message));
    }
    wake.notify();
  }

  void serve() {
    for (;;) {
      if (!handle_arrived())
        return;
      bool more = false;
      {
        const MutexLock lock(working);
        more = loop.turn();
        if (const auto fd = loop.upstream_fd())
          watch(*fd);
      }
      if (more)
        continue;
      if (const Status waited = loop.wait(events.get()); !waited)
        return log.error("weight relay stopped", {{"why", waited.error().context}});
    }
  }

  /// Returns false if the thread should end.
  bool handle_arrived() {
    wake.clear();
    const MutexLock at_work(working);
    std::deque<IncomingMessage> taken;
    {
      const MutexLock lock(mutex);
      if (ending)
        return false;
      taken.swap(arrived);
    }
    for (const IncomingMessage& message : taken)
      loop.on_message(message);
    return true;
  }

  const Log log;
  const RelayAddress address;
  WakeUp wake;
  FileDescriptor events;
  Mutex mutex;
  std::deque<IncomingMessage> arrived TEMPER_GUARDED_BY(mutex);
  bool ending TEMPER_GUARDED_BY(mutex) = false;
  Mutex working;  ///< Held except while the thread waits.
  RelayLoop loop;
  std::thread thread;
};

Relay::Relay(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->thread = std::thread([this] { impl_->serve(); });
}

Relay::~Relay() {
  {
    const MutexLock lock(impl_->mutex);
    impl_->ending = true;
  }
  impl_->wake.notify();
  impl_->thread.join();
}

Result<std::unique_ptr<Relay>> Relay::open(const std::string& orchestrator,
                                           const TransportConfig& transport,
                                           const Clock& clock,
                                           const Log& log) {
  TEMPER_TRY(const std::string host, local_address_toward(orchestrator));
  const KeyPair own = KeyPair::create();
  TEMPER_TRY(RouterSocket socket,
             RouterSocket::bind(fmt::format("{}{}:0", kTcp, host), transport, log, own));
  TEMPER_TRY(WakeUp wake, WakeUp::create());
  FileDescriptor events(::epoll_create1(EPOLL_CLOEXEC));
  if (!events.is_open())
    return io_error("cannot create an epoll", errno);
  RelayAddress address{socket.endpoint(), own.open};
  Exchange exchange(std::move(socket), {.heartbeat = kHeartbeat}, clock);
  RelayLoop loop(std::move(exchange), Upstream(own, transport, log), clock, log);
  return std::unique_ptr<Relay>(new Relay(std::make_unique<Impl>(
      std::move(loop), std::move(address), std::move(wake), std::move(events), log)));
}

const RelayAddress& Relay::address() const {
  return impl_->address;
}

void Relay::begin(Sinks sinks, Duration timeout) {
  const MutexLock at_work(impl_->working);
  impl_->loop.begin(std::move(sinks), timeout);
}

void Relay::end() {
  const MutexLock at_work(impl_->working);
  {
    const MutexLock lock(impl_->mutex);
    impl_->arrived.clear();
  }
  impl_->loop.end();
}

bool Relay::take(const IncomingMessage& message) {
  if (message.is<StageWeights>()) {
    const auto stage = message.decode<StageWeights>();
    if (!stage || stage->weights.fd >= 0 || !stage->weights.path.empty() ||
        stage->weights.bytes <= Bytes(0))
      return false;
  } else if (!message.is<WeightsChunk>() && !message.is<FeedWeights>() &&
             !message.is<FetchWeights>()) {
    return false;
  }
  impl_->push(message);
  return true;
}

/// `Announcement`: TrainerReady or Trained. Error: see MappedBuffer::open().
template <class Announcement>
Status Relay::publish_as(const OutgoingMessage& message, const Send& send) {
  TEMPER_TRY(auto announcement, IncomingMessage::from(message).decode<Announcement>());
  WeightsHandle& handle = announcement.weights;
  if (handle.fd < 0) {
    send(message);
    return {};
  }
  TEMPER_TRY(MappedBuffer image, MappedBuffer::open(handle));
  handle.pid = 0;
  handle.fd = -1;
  if (handle.bytes <= kChunk) {
    send(outgoing(announcement));
    return for_each_chunk(handle.version, image.bytes(), [&](const WeightsChunk& chunk) -> Status {
      send(outgoing(chunk));
      return {};
    });
  }
  handle.on_request = true;
  {
    const MutexLock at_work(impl_->working);
    impl_->loop.publish(handle, std::move(image));
  }
  send(outgoing(announcement));
  return {};
}

void Relay::publish(OutgoingMessage message, const Send& send) {
  Status status;
  if (message.tag == TrainerReady::kTag) {
    status = publish_as<TrainerReady>(message, send);
  } else if (message.tag == Trained::kTag) {
    status = publish_as<Trained>(message, send);
  } else {
    send(std::move(message));
  }
  if (!status)
    send(outgoing(Failed{.reason = "cannot publish weights: " + status.error().context}));
}

}  // namespace temper::actors
