#include "actors/transport/socket.hpp"

#include "actors/transport/internal/frames.hpp"
#include "actors/transport/internal/zap_authenticator.hpp"
#include "actors/transport/ipc_folder.hpp"
#include "core/temporary_folder.hpp"

#include <sys/random.h>
#include <zmq.hpp>

#include <array>

namespace temper::actors {

using namespace detail;  // NOLINT(google-build-using-namespace): the sockets are made of it.

std::string PeerId::text() const {
  std::string hex;
  for (const char c : bytes)
    hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

namespace {

/// I/O threads for TCP: one must not be blocked by encryption or by a flood of connections.
constexpr int kTcpThreads = 2;

/// An unpredictable id that cannot collide with the ids that ZeroMQ generates.
std::string random_routing_id() {
  std::array<unsigned char, 15> bytes{};
  const ssize_t n = ::getrandom(bytes.data(), bytes.size(), 0);
  TEMPER_CHECK(n == static_cast<ssize_t>(bytes.size()), "getrandom() failed");
  return "w" + std::string(bytes.begin(), bytes.end());
}

std::string text_property(const zmq::message_t& frame, const char* name) {
  const char* const text = ::zmq_msg_gets(frame.handle(), name);
  return text == nullptr ? "" : text;
}

}  // namespace

// RouterSocket

struct RouterSocket::Impl {
  Impl(const Log& l, bool tcp)
      : log(l), context(tcp ? kTcpThreads : 1), socket(context, zmq::socket_type::router) {}

  std::optional<TemporaryFolder> folder;  // Destroyed after the socket in it is closed.
  Log log;
  zmq::context_t context;
  zmq::socket_t socket;
  std::unique_ptr<ZapAuthenticator> authenticator;
  std::string endpoint;
  Bytes max_frame;
  TransportStats stats;
};

RouterSocket::RouterSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RouterSocket::RouterSocket(RouterSocket&&) noexcept = default;
RouterSocket& RouterSocket::operator=(RouterSocket&&) noexcept = default;
RouterSocket::~RouterSocket() = default;

Result<RouterSocket> RouterSocket::bind(const std::string& where,
                                        const TransportConfig& config,
                                        const Log& log,
                                        const std::optional<KeyPair>& key) {
  std::optional<TemporaryFolder> folder;
  std::string endpoint = where;
  if (where == "ipc") {
    TEMPER_TRY(folder, TemporaryFolder::create());
    const std::filesystem::path socket = folder->path() / kIpcSocket;
    TEMPER_TRY_STATUS(check_ipc_path(socket));
    endpoint = "ipc://" + socket.string();
  }
  TEMPER_TRY_STATUS(check_endpoint(endpoint));
  try {
    auto impl = std::make_unique<Impl>(log, is_tcp(endpoint));
    impl->max_frame = config.max_frame;
    impl->folder = std::move(folder);
    set_common_options(impl->socket, config, is_tcp(endpoint));
    impl->socket.set(zmq::sockopt::router_mandatory, true);
    // No key is required here, but the ZAP domain makes ZeroMQ refuse peers of ZMTP 1 and 2: one
    // that closes early can abort libzmq 4.3.4 (process_routing_id_msg).
    impl->socket.set(zmq::sockopt::zap_domain, "temper");
    if (key) {
      TEMPER_TRY(impl->authenticator, ZapAuthenticator::open(impl->context, impl->socket, log));
      impl->socket.set(zmq::sockopt::curve_server, true);
      impl->socket.set(zmq::sockopt::curve_secretkey, key->secret);
    }
    impl->socket.bind(endpoint);
    impl->endpoint = impl->socket.get(zmq::sockopt::last_endpoint);
    return RouterSocket(std::move(impl));
  } catch (const zmq::error_t& e) {
    return zmq_failed("cannot bind " + endpoint, e);
  }
}

void RouterSocket::let_in(const std::string& open_key,
                          const std::string& name,
                          std::size_t connections) {
  if (impl_->authenticator)
    impl_->authenticator->let_in(open_key, name, connections);
}

void RouterSocket::keep_out(const std::string& open_key) {
  if (impl_->authenticator)
    impl_->authenticator->keep_out(open_key);
}

const std::string& RouterSocket::endpoint() const {
  return impl_->endpoint;
}

Status RouterSocket::send(const PeerId& peer, std::string head, const Slice& body) {
  using zmq::send_flags;
  TEMPER_TRY_STATUS(check_frame(body, impl_->max_frame));
  try {
    zmq::socket_t& socket = impl_->socket;
    constexpr auto kMore = send_flags::sndmore | send_flags::dontwait;
    if (!send_frame(socket, zmq::message_t(peer.bytes.data(), peer.bytes.size()), kMore)) {
      return Error{ErrorCode::OutOfMemory,
                   fmt::format("peer {} is not reading: its send queue is full", peer.text())};
    }
    // Once the router has accepted the address frame, it accepts the rest without blocking.
    send_frame(socket, to_frame(Slice(std::move(head))), kMore);
    send_frame(socket, to_frame(body), send_flags::dontwait);
    ++impl_->stats.sent;
    return {};
  } catch (const zmq::error_t& e) {
    if (e.num() == EHOSTUNREACH)
      return Error{ErrorCode::Unavailable, fmt::format("peer {} has disconnected", peer.text())};
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
      std::string user;
      if (impl_->authenticator) {
        user = text_property(head, "User-Id");
        if (const std::string fd = text_property(head, "__fd");
            impl_->authenticator->has_pending() && !fd.empty())
          impl_->authenticator->authenticated(std::stoi(fd));
      }
      // The router adds the first frame; the peer sent the others.
      const std::string why = malformed(parts.count - 1, head, body);
      if (why.empty()) {
        ++impl_->stats.received;
        Received received = to_received(std::move(peer), std::move(head), std::move(body));
        received.user = std::move(user);
        return received;
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

Status RouterSocket::wait(Wait what, int wake_fd, Duration timeout) {
  const short events = what == Wait::Readable ? ZMQ_POLLIN : 0;
  try {
    wait_for(impl_->socket, events, wake_fd, timeout);
    return {};
  } catch (const zmq::error_t& e) {
    return zmq_failed("cannot wait for workers", e);
  }
}

TransportStats RouterSocket::stats() const {
  TransportStats stats = impl_->stats;
  stats.refused = impl_->authenticator ? impl_->authenticator->refused() : 0;
  return stats;
}

// DealerSocket

struct DealerSocket::Impl {
  explicit Impl(const Log& l) : log(l), socket(context, zmq::socket_type::dealer) {}

  Log log;
  zmq::context_t context{1};
  zmq::socket_t socket;
  std::optional<zmq::socket_t> events;  ///< Monitor events of an encrypted connection: whether our
                                        ///< key was refused.
  std::uint64_t refusals = 0;
  Bytes max_frame;
  TransportStats stats;
};

DealerSocket::DealerSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DealerSocket::DealerSocket(DealerSocket&&) noexcept = default;
DealerSocket& DealerSocket::operator=(DealerSocket&&) noexcept = default;
DealerSocket::~DealerSocket() = default;

Result<DealerSocket> DealerSocket::connect(const std::string& endpoint,
                                           const TransportConfig& config,
                                           const Log& log,
                                           const Credentials& credentials) {
  TEMPER_TRY_STATUS(check_endpoint(endpoint));
  try {
    auto impl = std::make_unique<Impl>(log);
    impl->max_frame = config.max_frame;
    set_common_options(impl->socket, config, is_tcp(endpoint));
    impl->socket.set(zmq::sockopt::routing_id, random_routing_id());
    if (!credentials.orchestrator_key.empty()) {
      impl->socket.set(zmq::sockopt::curve_serverkey, credentials.orchestrator_key);
      impl->socket.set(zmq::sockopt::curve_publickey, credentials.own.open);
      impl->socket.set(zmq::sockopt::curve_secretkey, credentials.own.secret);
      constexpr const char* kRefusals = "inproc://temper.refused";
      if (::zmq_socket_monitor(impl->socket.handle(), kRefusals, ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) !=
          0) {
        throw zmq::error_t();
      }
      impl->events.emplace(impl->context, zmq::socket_type::pair);
      impl->events->set(zmq::sockopt::linger, 0);
      impl->events->connect(kRefusals);
    }
    impl->socket.connect(endpoint);
    return DealerSocket(std::move(impl));
  } catch (const zmq::error_t& e) {
    return zmq_failed("cannot connect to " + endpoint, e);
  }
}

Result<bool> DealerSocket::try_send(std::string_view head, const Slice& body) {
  using zmq::send_flags;
  TEMPER_TRY_STATUS(check_frame(body, impl_->max_frame));
  try {
    if ((ready_events(impl_->socket) & ZMQ_POLLOUT) == 0)
      return false;
    send_frame(impl_->socket,
               zmq::message_t(head.data(), head.size()),
               send_flags::sndmore | send_flags::dontwait);
    send_frame(impl_->socket, to_frame(body), send_flags::dontwait);
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
  try {
    wait_for(impl_->socket, events, wake_fd, timeout);
    return {};
  } catch (const zmq::error_t& e) {
    return zmq_failed("cannot wait for the orchestrator", e);
  }
}

int DealerSocket::fd() const {
  return impl_->socket.get(zmq::sockopt::fd);
}

std::uint64_t DealerSocket::refusals() {
  try {
    Parts parts;
    while (impl_->events && receive_parts(*impl_->events, parts))
      ++impl_->refusals;
  } catch (const zmq::error_t& e) {
    impl_->log.error("socket failed", {{"why", e.what()}});
  }
  return impl_->refusals;
}

void DealerSocket::close(Duration linger) {
  try {
    if (impl_->events) {
      ::zmq_socket_monitor(impl_->socket.handle(), nullptr, 0);
      impl_->events->close();
    }
    impl_->socket.set(zmq::sockopt::linger, milliseconds_up(linger));
    impl_->socket.close();
    impl_->context.close();  // Blocks until the queue is flushed, for at most `linger`.
  } catch (const zmq::error_t& e) {
    impl_->log.error("close failed", {{"why", e.what()}});
  }
}

const TransportStats& DealerSocket::stats() const {
  return impl_->stats;
}

}  // namespace temper::actors
