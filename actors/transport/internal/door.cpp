#include "actors/transport/internal/door.hpp"

#include "actors/transport/internal/frames.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

namespace temper::actors::detail {
namespace {

constexpr const char* kAnswers = "inproc://zeromq.zap.01";  // ZeroMQ's own name for it.
constexpr const char* kEvents = "inproc://temper.door";
constexpr std::size_t kRawKey = 32;
constexpr std::size_t kRequestFrames = 7;  ///< Up to the key.
constexpr int kFirstEvent = 0;

std::string raw_key(const std::string& text) {
  std::string raw(kRawKey, '\0');
  TEMPER_CHECK(
      ::zmq_z85_decode(reinterpret_cast<std::uint8_t*>(raw.data()), text.c_str()) != nullptr,
      "a key in ZeroMQ's text form");
  return raw;
}

std::string text_key(const std::string& raw) {
  std::array<char, kRawKey * 5 / 4 + 1> text{};
  if (raw.size() != kRawKey ||
      ::zmq_z85_encode(
          text.data(), reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size()) == nullptr) {
    return "of another kind";
  }
  return text.data();
}

/// All frames of one message; empty if none is there.
std::vector<std::string> receive_all(zmq::socket_t& socket) {
  std::vector<std::string> frames;
  zmq::message_t frame;
  do {
    if (!uninterrupted([&] { return socket.recv(frame, zmq::recv_flags::dontwait); }))
      return {};
    frames.push_back(frame.to_string());
  } while (frame.more());
  return frames;
}

}  // namespace

Door::Door(zmq::context_t& context, zmq::socket_t& socket, WakeUp wake, const Log& log)
    : log_(log),
      socket_(socket),
      answers_(context, zmq::socket_type::rep),
      events_(context, zmq::socket_type::pair),
      wake_(std::move(wake)) {
  answers_.set(zmq::sockopt::linger, 0);
  answers_.bind(kAnswers);
  constexpr int kWatched = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                           ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                           ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
  if (::zmq_socket_monitor(socket.handle(), kEvents, kWatched) != 0)
    throw zmq::error_t();
  // The socket's I/O threads must never wait to tell us something.
  events_.set(zmq::sockopt::rcvhwm, 0);
  events_.set(zmq::sockopt::linger, 0);
  events_.connect(kEvents);
  thread_ = std::thread([this] { serve(); });
}

Result<std::unique_ptr<Door>> Door::open(zmq::context_t& context,
                                         zmq::socket_t& socket,
                                         const Log& log) {
  TEMPER_TRY(WakeUp wake, WakeUp::create());
  return std::unique_ptr<Door>(new Door(context, socket, std::move(wake), log));
}

Door::~Door() {
  ::zmq_socket_monitor(socket_.handle(), nullptr, 0);  // It would wait for us to listen.
  closing_ = true;
  wake_.notify();
  thread_.join();
}

void Door::let_in(const std::string& key, const std::string& name, std::size_t connections) {
  const MutexLock lock(mutex_);
  let_in_[raw_key(key)] = {name, connections};
  kept_out_.erase(raw_key(key));
}

void Door::keep_out(const std::string& key) {
  const MutexLock lock(mutex_);
  if (auto known = let_in_.extract(raw_key(key)))
    kept_out_.insert(std::move(known));
}

void Door::proved(int fd) {
  const MutexLock lock(mutex_);
  proved_.insert(fd);
}

void Door::serve() {
  constexpr auto kPatience = std::chrono::seconds(1);
  while (!closing_) {
    try {
      std::array<zmq::pollitem_t, 3> items{{{answers_.handle(), 0, ZMQ_POLLIN, 0},
                                            {events_.handle(), 0, ZMQ_POLLIN, 0},
                                            {nullptr, wake_.fd(), ZMQ_POLLIN, 0}}};
      zmq::poll(items, kPatience);
      wake_.clear();
      answer();
      watch();
      make_room();
      waiting_.store(pending_.size(), std::memory_order_relaxed);
    } catch (const zmq::error_t& e) {
      if (e.num() != EINTR)
        log_.error("door failed", {{"why", e.what()}});
    }
  }
}

/// ZeroMQ asks of each key (ZAP, rfc.zeromq.org/spec/27).
void Door::answer() {
  for (auto request = receive_all(answers_); !request.empty(); request = receive_all(answers_)) {
    std::string name;
    if (request.size() == kRequestFrames && request[5] == "CURVE") {
      name = find_key(request[6]);
    } else {
      refuse("it has no key");
    }
    const std::string id = request.size() > 1 ? request[1] : "";
    const std::array<std::string, 6> reply{
        "1.0", id, name.empty() ? "400" : "200", name.empty() ? "no" : "yes", name, ""};
    for (std::size_t i = 0; i < reply.size(); ++i) {
      const auto flags = i + 1 < reply.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
      answers_.send(zmq::buffer(reply[i]), flags);
    }
  }
}

/// The name that a key was let in by; empty: it was refused. The first refusal of each key that we
/// knew is logged, and of those that we did not know as many as refuse() logs.
std::string Door::find_key(const std::string& raw_key) {
  std::string was;
  {
    const MutexLock lock(mutex_);
    if (const auto it = let_in_.find(raw_key); it != let_in_.end())
      return it->second.name;
    if (const auto it = kept_out_.find(raw_key); it != kept_out_.end())
      was = it->second.name;
  }
  if (was.empty()) {
    refuse(fmt::format("a key that was not handed out: {}", text_key(raw_key).substr(0, 10)));
  } else if (named_.insert(raw_key).second) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    log_.warning("connection refused", {{"why", "a key that was taken back"}, {"key", was}});
  } else {
    refused_.fetch_add(1, std::memory_order_relaxed);
  }
  return {};
}

void Door::watch() {
  for (auto event = receive_all(events_); !event.empty(); event = receive_all(events_)) {
    std::uint16_t kind = 0;
    std::int32_t value = 0;  // of a connection: its descriptor
    const std::string& head = event[kFirstEvent];
    if (head.size() < sizeof(kind) + sizeof(value))
      continue;
    std::memcpy(&kind, head.data(), sizeof(kind));
    std::memcpy(&value, head.data() + sizeof(kind), sizeof(value));
    switch (kind) {
      case ZMQ_EVENT_ACCEPTED:
        pending_.push_back(value);
        break;
      case ZMQ_EVENT_DISCONNECTED:
        std::erase(pending_, value);
        break;
      case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
        break;  // counted where it was answered
      default:
        refuse("no handshake of this protocol");
    }
  }
  const MutexLock lock(mutex_);
  for (const int fd : proved_)
    std::erase(pending_, fd);
  proved_.clear();
}

/// Closes the oldest connections that have said nothing. Its descriptor is ZeroMQ's, which notices
/// the end and closes it; should it have done so a moment ago and another connection have the
/// number by now, that one is made again by its peer.
void Door::make_room() {
  std::size_t most = kPending;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, guest] : let_in_)
      most += guest.connections;
  }
  while (pending_.size() > most) {
    const int fd = pending_.front();
    pending_.pop_front();
    int accepts = 1;
    socklen_t size = sizeof(accepts);
    const bool is_socket =
        ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) == 0 && accepts == 0;
    sockaddr_storage from{};
    socklen_t length = sizeof(from);
    if (is_socket && ::getpeername(fd, reinterpret_cast<sockaddr*>(&from), &length) == 0 &&
        (from.ss_family == AF_INET || from.ss_family == AF_INET6)) {
      ::shutdown(fd, SHUT_RDWR);
    }
    refuse("more connections than may be waiting");
  }
}

void Door::refuse(std::string_view why) {
  const std::uint64_t count = refused_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (std::has_single_bit(count))
    log_.warning("connection refused", {{"why", why}, {"refused_so_far", count}});
}

}  // namespace temper::actors::detail
