#include "actors/transport/internal/zap_authenticator.hpp"

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

constexpr const char* kAnswers = "inproc://zeromq.zap.01";  // The address that ZeroMQ defines.
constexpr const char* kEvents = "inproc://temper.authenticator";
constexpr std::size_t kRawKey = 32;
constexpr std::size_t kRequestFrames = 7;  ///< Including the key.
constexpr int kFirstEvent = 0;

std::string raw_key(const std::string& text) {
  std::string raw(kRawKey, '\0');
  TEMPER_CHECK(
      ::zmq_z85_decode(reinterpret_cast<std::uint8_t*>(raw.data()), text.c_str()) != nullptr,
      "the key is not in ZeroMQ's text form (Z85)");
  return raw;
}

std::string text_key(const std::string& raw) {
  std::array<char, kRawKey * 5 / 4 + 1> text{};
  if (raw.size() != kRawKey ||
      ::zmq_z85_encode(
          text.data(), reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size()) == nullptr) {
    return "malformed";
  }
  return text.data();
}

/// All frames of the next message; empty if there is none.
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

ZapAuthenticator::ZapAuthenticator(zmq::context_t& context,
                                   zmq::socket_t& socket,
                                   WakeUp wake,
                                   const Log& log)
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
  // The socket's I/O threads must never block on reporting an event.
  events_.set(zmq::sockopt::rcvhwm, 0);
  events_.set(zmq::sockopt::linger, 0);
  events_.connect(kEvents);
  thread_ = std::thread([this] { serve(); });
}

Result<std::unique_ptr<ZapAuthenticator>> ZapAuthenticator::open(zmq::context_t& context,
                                                                 zmq::socket_t& socket,
                                                                 const Log& log) {
  TEMPER_TRY(WakeUp wake, WakeUp::create());
  return std::unique_ptr<ZapAuthenticator>(
      new ZapAuthenticator(context, socket, std::move(wake), log));
}

ZapAuthenticator::~ZapAuthenticator() {
  // Stop the monitor first: it would block until we read.
  ::zmq_socket_monitor(socket_.handle(), nullptr, 0);
  closing_ = true;
  wake_.notify();
  thread_.join();
}

void ZapAuthenticator::let_in(const std::string& key,
                              const std::string& name,
                              std::size_t connections) {
  const MutexLock lock(mutex_);
  allowed_[raw_key(key)] = {name, connections};
  revoked_.erase(raw_key(key));
}

void ZapAuthenticator::keep_out(const std::string& key) {
  const MutexLock lock(mutex_);
  if (auto known = allowed_.extract(raw_key(key)))
    revoked_.insert(std::move(known));
}

void ZapAuthenticator::authenticated(int fd) {
  const MutexLock lock(mutex_);
  authenticated_.insert(fd);
}

void ZapAuthenticator::serve() {
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
      close_excess();
      pending_count_.store(pending_.size(), std::memory_order_relaxed);
    } catch (const zmq::error_t& e) {
      if (e.num() != EINTR)
        log_.error("authentication failed", {{"why", e.what()}});
    }
  }
}

/// Answers ZeroMQ's question about each key (ZAP, rfc.zeromq.org/spec/27).
void ZapAuthenticator::answer() {
  for (auto request = receive_all(answers_); !request.empty(); request = receive_all(answers_)) {
    std::string name;
    if (request.size() == kRequestFrames && request[5] == "CURVE") {
      name = find_key(request[6]);
    } else {
      refuse("the peer has no key");
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

/// The name to which the key was issued; empty if it is refused. For a revoked key the first
/// refusal is logged; refusals of unknown keys are logged as by refuse().
std::string ZapAuthenticator::find_key(const std::string& raw_key) {
  std::string was;
  {
    const MutexLock lock(mutex_);
    if (const auto it = allowed_.find(raw_key); it != allowed_.end())
      return it->second.name;
    if (const auto it = revoked_.find(raw_key); it != revoked_.end())
      was = it->second.name;
  }
  if (was.empty()) {
    refuse(fmt::format("unknown key: {}", text_key(raw_key).substr(0, 10)));
  } else if (named_.insert(raw_key).second) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    log_.warning("connection refused", {{"why", "the key was revoked"}, {"key", was}});
  } else {
    refused_.fetch_add(1, std::memory_order_relaxed);
  }
  return {};
}

void ZapAuthenticator::watch() {
  for (auto event = receive_all(events_); !event.empty(); event = receive_all(events_)) {
    std::uint16_t kind = 0;
    std::int32_t value = 0;  // the descriptor of the connection
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
        break;  // counted when the key was refused
      default:
        refuse("the handshake failed: not a peer of this protocol");
    }
  }
  const MutexLock lock(mutex_);
  for (const int fd : authenticated_)
    std::erase(pending_, fd);
  authenticated_.clear();
}

/// Closes the oldest silent connections. ZeroMQ owns the descriptor and closes it once it notices
/// the end. If it has just closed it and another connection has reused the number, that peer
/// reconnects.
void ZapAuthenticator::close_excess() {
  std::size_t most = kPending;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, allowed] : allowed_)
      most += allowed.connections;
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
    refuse("too many unauthenticated connections");
  }
}

void ZapAuthenticator::refuse(std::string_view why) {
  const std::uint64_t count = refused_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (std::has_single_bit(count))
    log_.warning("connection refused", {{"why", why}, {"refused_so_far", count}});
}

}  // namespace temper::actors::detail
