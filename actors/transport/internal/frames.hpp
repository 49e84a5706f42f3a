// Code that both sockets share: ZeroMQ calls, frames that own their bytes, and the form of a
// message.
#pragma once

#include "actors/transport/socket.hpp"

#include <zmq.hpp>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

namespace temper::actors::detail {

inline constexpr int kDropsPerReceive = 128;
inline constexpr std::size_t kMaxParts = 3;

Error zmq_failed(std::string_view what, const zmq::error_t& e);

/// Repeats a ZeroMQ call that a signal (Ctrl-C, the exit of a child) interrupted.
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

int ready_events(zmq::socket_t& socket);
/// Rounds up and clamps to the range that ZeroMQ accepts.
int milliseconds_up(Duration d);

/// A frame with these bytes. Large ones are shared, small ones copied.
zmq::message_t to_frame(const Slice& bytes);

struct Parts {
  std::array<zmq::message_t, kMaxParts> frames;
  std::size_t count = 0;  ///< Number sent; only the first kMaxParts are kept.
};
/// Returns false if no message is available.
bool receive_parts(zmq::socket_t& socket, Parts& parts);

/// The reason why this message is malformed; empty if it is well-formed.
std::string malformed(std::size_t count, const zmq::message_t& head, const zmq::message_t& body);
Received to_received(PeerId peer, zmq::message_t head, zmq::message_t body);
/// Error InvalidInput if the frame is so large that the peer would disconnect.
Status check_frame(const Slice& body, Bytes max_frame);

bool is_tcp(std::string_view endpoint);
/// Error InvalidInput unless the endpoint begins with ipc:// or tcp://.
Status check_endpoint(std::string_view endpoint);
void set_common_options(zmq::socket_t& socket, const TransportConfig& config, bool tcp);

/// Blocks until one of `events` occurs, `wake_fd` is readable, or `timeout` has passed.
void wait_for(zmq::socket_t& socket, short events, int wake_fd, Duration timeout);

/// Counts malformed messages and logs the 1st, 2nd, 4th, 8th, ... one.
void count_drop(TransportStats& stats, const Log& log, const PeerId& peer, std::string_view why);

}  // namespace temper::actors::detail
