#include "actors/transport/socket.hpp"

#include "core/temporary_folder.hpp"

#include <unistd.h>
#include <zmq.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <limits>

namespace temper::actors {
namespace {

namespace fs = std::filesystem;

/// Below this a copy costs less than handing over a heap block.
constexpr std::size_t kCopyBelow = 4096;
constexpr int kDropsPerReceive = 128;
constexpr std::size_t kMaxParts = 3;

Error zmq_failed(std::string_view what, const zmq::error_t& e) {
  return {ErrorCode::Io, fmt::format("{}: {}", what, e.what())};
}

/// Calls ZeroMQ again where a signal (Ctrl-C, a child's end) came between.
template <class F>
auto uninterrupted(F call) {
  for (;;) {
    try {
      return call();
    } catch (const zmq::error_t& e) {
      if (e.num() != EINTR)
        throw;
    }
  }
}

template <class Frame>
bool send_frame(zmq::socket_t& socket, Frame&& frame, zmq::send_flags flags) {
  return uninterrupted([&] { return socket.send(frame, flags); }).has_value();
}

int ready_events(zmq::socket_t& socket) {
  return uninterrupted([&] { return socket.get(zmq::sockopt::events); });
}

int milliseconds_up(Duration d) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(d).count();
  return static_cast<int>(
      std::clamp<std::int64_t>(ms, 0, std::numeric_limits<std::int32_t>::max()));
}

/// Called by ZeroMQ, on one of its threads, when a frame that owns its text is done with.
void release_frame(void*, void* text) {
  const std::unique_ptr<std::string> reclaimed(static_cast<std::string*>(text));
}

/// A frame that takes over `text` without a copy where that pays.
zmq::message_t to_frame(std::string text) {
  if (text.size() < kCopyBelow)
    return zmq::message_t(text.data(), text.size());
  auto owned = std::make_unique<std::string>(std::move(text));
  zmq::message_t frame(owned->data(), owned->size(), release_frame, owned.get());
  static_cast<void>(owned.release());  // Now the frame's.
  return frame;
}

struct Parts {
  std::array<zmq::message_t, kMaxParts> frames;
  std::size_t count = 0;  ///< As sent; only the first kMaxParts are kept.
};

/// False if nothing is there.
bool receive_parts(zmq::socket_t& socket, Parts& parts) {
  parts.count = 0;
  for (bool more = true; more;) {
    zmq::message_t surplus;
    zmq::message_t& into = parts.count < kMaxParts ? parts.frames[parts.count] : surplus;
    if (!uninterrupted([&] { return socket.recv(into, zmq::recv_flags::dontwait); }))
      return false;
    more = into.more();
    ++parts.count;
  }
  return true;
}

/// Why a message of `count` frames with this head and body is not one of ours; empty if it is.
std::string malformed(std::size_t count, const zmq::message_t& head, const zmq::message_t& body) {
  if (count != 2)
    return fmt::format("{} frames instead of 2", count);
  if (head.size() == 0 || body.size() == 0)
    return "an empty frame";
  if (head.size() > static_cast<std::size_t>(kMaxHead.count()))
    return fmt::format("a head of {} bytes", head.size());
  return {};
}

Received to_received(PeerId peer, zmq::message_t head, zmq::message_t body) {
  using Frames = std::pair<zmq::message_t, zmq::message_t>;
  auto frames = std::make_shared<const Frames>(std::move(head), std::move(body));
  return {.peer = std::move(peer),
          .head = frames->first.to_string_view(),
          .body = frames->second.to_string_view(),
          .owner = frames};
}

void set_common_options(zmq::socket_t& socket, const TransportConfig& config, bool tcp) {
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::maxmsgsize, config.max_frame.count());
  socket.set(zmq::sockopt::sndhwm, config.queue);
  socket.set(zmq::sockopt::rcvhwm, config.queue);
  socket.set(zmq::sockopt::handshake_ivl, milliseconds_up(config.handshake));
  if (tcp) {  // A peer whose host has vanished is noticed, where a local one is by its closed
              // socket.
    socket.set(zmq::sockopt::heartbeat_ivl, 2'000);
    socket.set(zmq::sockopt::heartbeat_timeout, 10'000);
  }
}

bool is_tcp(std::string_view endpoint) {
  return endpoint.starts_with("tcp://");
}

Status check_endpoint(std::string_view endpoint) {
  if (is_tcp(endpoint) || endpoint.starts_with("ipc://"))
    return {};
  return invalid_input(
      fmt::format("\"{}\" is no endpoint: expected ipc://PATH or tcp://HOST:PORT", endpoint));
}

/// Counting and logging of malformed messages, at 1, 2, 4, 8, ...
void count_drop(TransportStats& stats, const Log& log, const PeerId& peer, std::string_view why) {
  ++stats.dropped;
  if (std::has_single_bit(stats.dropped)) {
    log.warning("message dropped",
                {{"peer", peer.text()}, {"why", why}, {"dropped_so_far", stats.dropped}});
  }
}

}  // namespace

std::string PeerId::text() const {
  std::string hex;
  for (const char c : bytes)
    hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

// RouterSocket

struct RouterSocket::Impl {
  explicit Impl(const Log& l) : log(l), socket(context, zmq::socket_type::router) {}

  std::optional<TemporaryFolder> folder;  // Removed after the socket in it is closed.
  Log log;
  zmq::context_t context{1};
  zmq::socket_t socket;
  std::string endpoint;
  TransportStats stats;
};

RouterSocket::RouterSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RouterSocket::RouterSocket(RouterSocket&&) noexcept = default;
RouterSocket& RouterSocket::operator=(RouterSocket&&) noexcept = default;
RouterSocket::~RouterSocket() = default;

Result<RouterSocket> RouterSocket::bind(const std::string& where,
                                        const TransportConfig& config,
                                        const Log& log) {
  std::optional<TemporaryFolder> folder;
  std::string endpoint = where;
  if (where == "ipc") {
    TEMPER_TRY(folder, TemporaryFolder::create());
    endpoint = "ipc://" + folder->path().string() + "/orchestrator";
  }
  TEMPER_TRY_STATUS(check_endpoint(endpoint));
  try {
    auto impl = std::make_unique<Impl>(log);
    impl->folder = std::move(folder);
    set_common_options(impl->socket, config, is_tcp(endpoint));
    impl->socket.set(zmq::sockopt::router_mandatory, true);
    impl->socket.bind(endpoint);
    impl->endpoint = impl->socket.get(zmq::sockopt::last_endpoint);
    return RouterSocket(std::move(impl));
  } catch (const zmq::error_t& e) {
    return zmq_failed("cannot bind " + endpoint, e);
  }
}

const std::string& RouterSocket::endpoint() const {
  return impl_->endpoint;
}

Status RouterSocket::send(const PeerId& peer, std::string head, std::string body) {
  using zmq::send_flags;
  try {
    zmq::socket_t& socket = impl_->socket;
    constexpr auto kMore = send_flags::sndmore | send_flags::dontwait;
    if (!send_frame(socket, zmq::message_t(peer.bytes.data(), peer.bytes.size()), kMore)) {
      return Error{ErrorCode::OutOfMemory,
                   fmt::format("peer {} does not read: its queue is full", peer.text())};
    }
    // Once the router took the address it takes the rest without waiting.
    send_frame(socket, to_frame(std::move(head)), kMore);
    send_frame(socket, to_frame(std::move(body)), send_flags::dontwait);
    ++impl_->stats.sent;
    return {};
  } catch (const zmq::error_t& e) {
    if (e.num() == EHOSTUNREACH)
      return Error{ErrorCode::Unavailable, fmt::format("peer {} is gone", peer.text())};
    return zmq_failed("cannot send to peer " + peer.text(), e);
  }
}

std::optional<Received> RouterSocket::try_receive() {
  try {
    Parts parts;
    for (int drops = 0; drops < kDropsPerReceive; ++drops) {
      if (!receive_parts(impl_->socket, parts))
        return std::nullopt;
      auto& [identity, head, body] = parts.frames;
      PeerId peer{identity.to_string()};
      // The router itself puts the first frame; the peer sent the others.
      const std::string why = malformed(parts.count - 1, head, body);
      if (why.empty()) {
        ++impl_->stats.received;
        return to_received(std::move(peer), std::move(head), std::move(body));
      }
      drop(peer, why);
    }
  } catch (const zmq::error_t& e) {
    impl_->log.error("receive failed", {{"endpoint", impl_->endpoint}, {"why", e.what()}});
  }
  return std::nullopt;
}

void RouterSocket::drop(const PeerId& peer, std::string_view why) {
  count_drop(impl_->stats, impl_->log, peer, why);
}

int RouterSocket::fd() const {
  return impl_->socket.get(zmq::sockopt::fd);
}

bool RouterSocket::readable() {
  try {
    return (ready_events(impl_->socket) & ZMQ_POLLIN) != 0;
  } catch (const zmq::error_t& e) {
    impl_->log.error("socket failed", {{"endpoint", impl_->endpoint}, {"why", e.what()}});
    return false;
  }
}

const TransportStats& RouterSocket::stats() const {
  return impl_->stats;
}

// DealerSocket

struct DealerSocket::Impl {
  explicit Impl(const Log& l) : log(l), socket(context, zmq::socket_type::dealer) {}

  Log log;
  zmq::context_t context{1};
  zmq::socket_t socket;
  TransportStats stats;
};

DealerSocket::DealerSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DealerSocket::DealerSocket(DealerSocket&&) noexcept = default;
DealerSocket& DealerSocket::operator=(DealerSocket&&) noexcept = default;
DealerSocket::~DealerSocket() = default;

Result<DealerSocket> DealerSocket::connect(const std::string& endpoint,
                                           const TransportConfig& config,
                                           const Log& log) {
  TEMPER_TRY_STATUS(check_endpoint(endpoint));
  try {
    auto impl = std::make_unique<Impl>(log);
    set_common_options(impl->socket, config, is_tcp(endpoint));
    impl->socket.connect(endpoint);
    return DealerSocket(std::move(impl));
  } catch (const zmq::error_t& e) {
    return zmq_failed("cannot connect to " + endpoint, e);
  }
}

Result<bool> DealerSocket::try_send(std::string_view head, std::string& body) {
  using zmq::send_flags;
  try {
    if ((ready_events(impl_->socket) & ZMQ_POLLOUT) == 0)
      return false;
    send_frame(impl_->socket,
               zmq::message_t(head.data(), head.size()),
               send_flags::sndmore | send_flags::dontwait);
    send_frame(impl_->socket, to_frame(std::move(body)), send_flags::dontwait);
    ++impl_->stats.sent;
    return true;
  } catch (const zmq::error_t& e) {
    return zmq_failed("cannot send to the orchestrator", e);
  }
}

std::optional<Received> DealerSocket::try_receive() {
  try {
    Parts parts;
    for (int drops = 0; drops < kDropsPerReceive; ++drops) {
      if (!receive_parts(impl_->socket, parts))
        return std::nullopt;
      auto& [head, body, surplus] = parts.frames;
      const std::string why = malformed(parts.count, head, body);
      if (why.empty()) {
        ++impl_->stats.received;
        return to_received({}, std::move(head), std::move(body));
      }
      count_drop(impl_->stats, impl_->log, {}, why);
    }
  } catch (const zmq::error_t& e) {
    impl_->log.error("receive failed", {{"why", e.what()}});
  }
  return std::nullopt;
}

Status DealerSocket::wait(Wait what, int wake_fd, Duration timeout) {
  const auto events =
      static_cast<short>(what == Wait::Readable ? ZMQ_POLLIN : ZMQ_POLLIN | ZMQ_POLLOUT);
  std::array<zmq::pollitem_t, 2> items{
      {{impl_->socket.handle(), 0, events, 0}, {nullptr, wake_fd, ZMQ_POLLIN, 0}}};
  try {
    zmq::poll(items, std::chrono::milliseconds(milliseconds_up(timeout)));
    return {};
  } catch (const zmq::error_t& e) {
    if (e.num() == EINTR)
      return {};
    return zmq_failed("cannot wait for the orchestrator", e);
  }
}

void DealerSocket::close(Duration linger) {
  try {
    impl_->socket.set(zmq::sockopt::linger, milliseconds_up(linger));
    impl_->socket.close();
    impl_->context.close();  // Waits for the queue, at most `linger`.
  } catch (const zmq::error_t& e) {
    impl_->log.error("close failed", {{"why", e.what()}});
  }
}

const TransportStats& DealerSocket::stats() const {
  return impl_->stats;
}

}  // namespace temper::actors
