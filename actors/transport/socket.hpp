// ZeroMQ sockets. A message is two opaque frames, head and body. The orchestrator binds a
// RouterSocket; each worker connects a DealerSocket.
//
// Each socket belongs to one thread at a time. Malformed input (a wrong number of frames, an empty
// or oversized frame, a foreign protocol) is counted and dropped; it never causes an error.
#pragma once

#include "actors/transport/credentials.hpp"
#include "actors/transport/transport_config.hpp"
#include "core/log.hpp"
#include "core/result.hpp"

#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace temper::actors {

/// Largest head accepted; an envelope has about 20 bytes.
inline constexpr Bytes kMaxHead{256};

/// One connection of a peer, identified by the router. A peer that reconnects gets a new PeerId.
struct PeerId {
  std::string bytes;
  auto operator<=>(const PeerId&) const = default;
  /// Hexadecimal text for messages.
  std::string text() const;
};

/// Bytes to send, with shared ownership of their storage.
class Slice {
 public:
  Slice() = default;
  Slice(std::string text)  // NOLINT: implicit; takes ownership of the string
      : owner_(std::make_shared<const std::string>(std::move(text))),
        bytes_(*static_cast<const std::string*>(owner_.get())) {}
  Slice(std::shared_ptr<const void> owner, std::string_view bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}

  std::string_view bytes() const { return bytes_; }
  const char* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  /// `count` bytes from `offset` on; shares the ownership.
  Slice part(std::size_t offset, std::size_t count) const {
    return {owner_, bytes_.substr(offset, count)};
  }

 private:
  std::shared_ptr<const void> owner_;
  std::string_view bytes_;
};

/// A received message. The views are valid as long as `owner`; they are not aligned.
struct Received {
  PeerId peer;         ///< Empty for a dealer.
  std::string user{};  ///< Name to which the peer's key was issued; empty without encryption.
  std::string_view head;
  std::string_view body;
  std::shared_ptr<const void> owner;
};

struct TransportStats {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint64_t dropped = 0;  ///< Malformed messages.
  std::uint64_t refused = 0;  ///< Connections that failed the handshake.
};

/// The orchestrator's socket. All calls except wait() return without blocking.
class RouterSocket {
 public:
  /// `where`: "ipc" (a socket in a new private folder), "ipc:///path", or "tcp://host:port"; port 0
  /// picks a free port. With a `key`, connections are encrypted (CURVE), and only peers whose key
  /// was let in pass the handshake. Errors: InvalidInput, Io if the address cannot be bound.
  static Result<RouterSocket> bind(const std::string& where,
                                   const TransportConfig& config,
                                   const Log& log,
                                   const std::optional<KeyPair>& key = std::nullopt);
  RouterSocket(RouterSocket&&) noexcept;
  RouterSocket& operator=(RouterSocket&&) noexcept;
  /// Discards unsent messages and removes the private folder.
  ~RouterSocket();

  /// Allows connections with this public key, as `name`; `connections` is how many are expected at
  /// once. Thread-safe. No effect on a socket without a key.
  void let_in(const std::string& open_key, const std::string& name, std::size_t connections = 1);
  /// Refuses new connections with this public key. Thread-safe.
  void keep_out(const std::string& open_key);

  /// The address that workers connect to, with the actual port. A host 0.0.0.0 is kept as bound.
  const std::string& endpoint() const;

  /// Queues a message for sending. Errors: Unavailable if the peer has disconnected; OutOfMemory if
  /// the peer is not reading and its queue is full; InvalidInput if a frame is larger than
  /// `max_frame`.
  Status send(const PeerId& peer, std::string head, const Slice& body);
  /// The next well-formed message, if any. Drops at most kDropsPerReceive malformed ones per call;
  /// after an empty result, readable() tells whether to call again.
  std::optional<Received> try_receive();
  /// Counts a message that a higher layer found malformed; logs the 1st, 2nd, 4th, 8th, ... one.
  void drop(const PeerId& peer, std::string_view why);

  /// Edge-triggered like ZMQ_FD: check readable() after every send and receive, before waiting.
  int fd() const;
  bool readable();
  enum class Wait { Readable, WakeOnly };
  /// Blocks until a message can be received (unless WakeOnly), `wake_fd` is readable, or `timeout`
  /// has passed.
  Status wait(Wait what, int wake_fd, Duration timeout);
  TransportStats stats() const;

 private:
  struct Impl;
  explicit RouterSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A worker's socket.
class DealerSocket {
 public:
  /// Returns at once; connects, and retries, in the background. With the orchestrator's key in
  /// `credentials`, the connection is encrypted and reaches only that orchestrator.
  static Result<DealerSocket> connect(const std::string& endpoint,
                                      const TransportConfig& config,
                                      const Log& log,
                                      const Credentials& credentials = {});
  DealerSocket(DealerSocket&&) noexcept;
  DealerSocket& operator=(DealerSocket&&) noexcept;
  /// Discards unsent messages; call close() to flush them.
  ~DealerSocket();

  /// Returns false, having queued nothing, if the queue is full; then wait until it is writable.
  /// Error InvalidInput: a frame larger than `max_frame`.
  Result<bool> try_send(std::string_view head, const Slice& body);
  std::optional<Received> try_receive();

  enum class Wait { Readable, ReadableOrWritable };
  /// Blocks until a message can be received (or sent), `wake_fd` is readable, or `timeout` has
  /// passed.
  Status wait(Wait what, int wake_fd, Duration timeout);

  /// Edge-triggered like ZMQ_FD: after every send and receive, receive once more before waiting.
  int fd() const;
  /// How often the orchestrator has refused our key, on an encrypted connection.
  std::uint64_t refusals();
  /// Flushes the queue for at most `linger`, then disconnects.
  void close(Duration linger);
  const TransportStats& stats() const;

 private:
  struct Impl;
  explicit DealerSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace temper::actors
