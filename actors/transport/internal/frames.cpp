#include "actors/transport/internal/frames.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace temper::actors::detail {
namespace {

/// Below this size copying is cheaper than sharing a heap block.
constexpr std::size_t kCopyBelow = 4096;

/// Called by ZeroMQ, on one of its threads, when it no longer needs a shared frame.
void release_frame(void*, void* slice) {
  const std::unique_ptr<Slice> reclaimed(static_cast<Slice*>(slice));
}

}  // namespace

Error zmq_failed(std::string_view what, const zmq::error_t& e) {
  return {ErrorCode::Io, fmt::format("{}: {}", what, e.what())};
}

int ready_events(zmq::socket_t& socket) {
  return uninterrupted([&] { return socket.get(zmq::sockopt::events); });
}

int milliseconds_up(Duration d) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(d).count();
  return static_cast<int>(
      std::clamp<std::int64_t>(ms, 0, std::numeric_limits<std::int32_t>::max()));
}

zmq::message_t to_frame(const Slice& bytes) {
  if (bytes.size() < kCopyBelow)
    return zmq::message_t(bytes.data(), bytes.size());
  auto shared = std::make_unique<Slice>(bytes);
  // ZeroMQ's interface takes a mutable pointer but does not write.
  void* const data = const_cast<char*>(bytes.data());
  zmq::message_t frame(data, bytes.size(), release_frame, shared.get());
  static_cast<void>(shared.release());  // The frame owns it now.
  return frame;
}

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

std::string malformed(std::size_t count, const zmq::message_t& head, const zmq::message_t& body) {
  if (count != 2)
    return fmt::format("expected 2 frames, found {}", count);
  if (head.size() == 0 || body.size() == 0)
    return "an empty frame";
  if (head.size() > static_cast<std::size_t>(kMaxHead.count()))
    return fmt::format(
        "expected a head of at most {} bytes, found {}", kMaxHead.count(), head.size());
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

Status check_frame(const Slice& body, Bytes max_frame) {
  if (body.size() <= static_cast<std::size_t>(max_frame.count()))
    return {};
  return invalid_input(
      fmt::format("cannot send a frame of {} bytes: transport.max_frame is {}, and the peer would "
                  "disconnect",
                  body.size(),
                  max_frame.count()));
}

bool is_tcp(std::string_view endpoint) {
  return endpoint.starts_with("tcp://");
}

Status check_endpoint(std::string_view endpoint) {
  if (is_tcp(endpoint) || endpoint.starts_with("ipc://"))
    return {};
  return invalid_input(
      fmt::format("invalid endpoint \"{}\": expected ipc://PATH or tcp://HOST:PORT", endpoint));
}

void set_common_options(zmq::socket_t& socket, const TransportConfig& config, bool tcp) {
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::maxmsgsize, config.max_frame.count());
  socket.set(zmq::sockopt::sndhwm, config.queue);
  socket.set(zmq::sockopt::rcvhwm, config.queue);
  socket.set(zmq::sockopt::handshake_ivl, milliseconds_up(config.handshake));
  if (tcp) {  // Detects a peer whose host has vanished; a local peer is detected by its closed
              // socket. ZeroMQ's own heartbeats are not used: they abort libzmq 4.3.4 if a peer
              // ends while its queue is full.
    socket.set(zmq::sockopt::tcp_keepalive, 1);
    socket.set(zmq::sockopt::tcp_keepalive_idle, 10);
    socket.set(zmq::sockopt::tcp_keepalive_intvl, 5);
    socket.set(zmq::sockopt::tcp_keepalive_cnt, 3);
    socket.set(zmq::sockopt::backlog, 1024);
  }
}

void wait_for(zmq::socket_t& socket, short events, int wake_fd, Duration timeout) {
  std::array<zmq::pollitem_t, 2> items{
      {{socket.handle(), 0, events, 0}, {nullptr, wake_fd, ZMQ_POLLIN, 0}}};
  try {
    zmq::poll(items, std::chrono::milliseconds(milliseconds_up(timeout)));
  } catch (const zmq::error_t& e) {
    if (e.num() != EINTR)
      throw;
  }
}

void count_drop(TransportStats& stats, const Log& log, const PeerId& peer, std::string_view why) {
  ++stats.dropped;
  if (std::has_single_bit(stats.dropped)) {
    log.warning("message dropped",
                {{"peer", peer.text()}, {"why", why}, {"dropped_so_far", stats.dropped}});
  }
}

}  // namespace temper::actors::detail
