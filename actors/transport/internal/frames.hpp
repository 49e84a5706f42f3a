// What both sockets share: calls of ZeroMQ, frames that own their bytes, the form of a message.
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

int ready_events(zmq::socket_t& socket);
/// Rounded up; within what ZeroMQ takes.
int milliseconds_up(Duration d);

/// A frame that shares `bytes` without a copy where that pays.
zmq::message_t to_frame(const Slice& bytes);

struct Parts {
  std::array<zmq::message_t, kMaxParts> frames;
  std::size_t count = 0;  ///< As sent; only the first kMaxParts are kept.
};
/// False if nothing is there.
bool receive_parts(zmq::socket_t& socket, Parts& parts);

/// Why a message of `count` frames with this head and body is not one of ours; empty if it is.
std::string malformed(std::size_t count, const zmq::message_t& head, const zmq::message_t& body);
Received to_received(PeerId peer, zmq::message_t head, zmq::message_t body);
/// Error: a frame that the other side would cut the connection for.
Status check_frame(const Slice& body, Bytes max_frame);

bool is_tcp(std::string_view endpoint);
Status check_endpoint(std::string_view endpoint);
void set_common_options(zmq::socket_t& socket, const TransportConfig& config, bool tcp);

/// Returns when one of `events` is there, `wake_fd` is readable, or `timeout` is over.
void wait_for(zmq::socket_t& socket, short events, int wake_fd, Duration timeout);

/// Counting and logging of malformed messages, at 1, 2, 4, 8, ...
void count_drop(TransportStats& stats, const Log& log, const PeerId& peer, std::string_view why);

}  // namespace temper::actors::detail
