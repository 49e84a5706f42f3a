// ZeroMQ, and the only files that include it. A message is two frames, head and body, whose meaning
// is not known here. The orchestrator binds a RouterSocket; each worker connects a DealerSocket.
//
// Each socket belongs to one thread at a time. What arrives malformed (a wrong number of frames, an
// empty or oversized one, a foreign protocol) is counted and dropped, and never an error of ours.
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

/// Largest head accepted: an envelope is some twenty bytes.
inline constexpr Bytes kMaxHead{256};

/// One connection of a peer, named by the router. A peer that reconnects is a new PeerId.
struct PeerId {
  std::string bytes;
  auto operator<=>(const PeerId&) const = default;
  /// Hexadecimal, for people.
  std::string text() const;
};

/// Bytes on their way out, and whoever keeps them until they are sent.
class Slice {
 public:
  Slice() = default;
  Slice(std::string text)  // NOLINT: a string is its own keeper.
      : owner_(std::make_shared<const std::string>(std::move(text))),
        bytes_(*static_cast<const std::string*>(owner_.get())) {}
  Slice(std::shared_ptr<const void> owner, std::string_view bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}

  std::string_view bytes() const { return bytes_; }
  const char* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  /// The `count` bytes from `offset` on, kept by the same owner.
  Slice part(std::size_t offset, std::size_t count) const {
    return {owner_, bytes_.substr(offset, count)};
  }

 private:
  std::shared_ptr<const void> owner_;
  std::string_view bytes_;
};

/// A message as it arrived. The views live as long as `owner`; they are not aligned to anything.
struct Received {
  PeerId peer;         ///< Empty at a dealer.
  std::string user{};  ///< Whom its key was handed out to; empty without encryption.
  std::string_view head;
  std::string_view body;
  std::shared_ptr<const void> owner;
};

struct TransportStats {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint64_t dropped = 0;  ///< Malformed messages.
  std::uint64_t refused = 0;  ///< Connections that did not pass the handshake.
};

/// The orchestrator's side. Moves messages without blocking.
class RouterSocket {
 public:
  /// `where`: "ipc" (a socket in a new private folder), "ipc:///path", or "tcp://host:port"; port 0
  /// takes a free one. With a `key` connections are encrypted (CURVE), and only who has a key that
  /// was let in gets past the handshake. Errors: the address cannot be bound.
  static Result<RouterSocket> bind(const std::string& where,
                                   const TransportConfig& config,
                                   const Log& log,
                                   const std::optional<KeyPair>& key = std::nullopt);
  RouterSocket(RouterSocket&&) noexcept;
  RouterSocket& operator=(RouterSocket&&) noexcept;
  /// Unsent messages are discarded; a private folder is removed.
  ~RouterSocket();

  /// Whoever has the secret to this open key may connect, as `name`; so many connections with it
  /// are expected at once. From any thread; without effect on a socket that has no key.
  void let_in(const std::string& open_key, const std::string& name, std::size_t connections = 1);
  /// No connection is made with it any more.
  void keep_out(const std::string& open_key);

  /// Where workers connect, with the real port. Host 0.0.0.0 stays as bound.
  const std::string& endpoint() const;

  /// Hands a message over for sending. Errors: Unavailable, the peer is gone; OutOfMemory, it does
  /// not read and its queue is full; InvalidInput, a frame larger than `max_frame`.
  Status send(const PeerId& peer, std::string head, const Slice& body);
  /// The next well-formed message, if any. Drops at most some hundred malformed ones per call, so
  /// after an empty answer ask readable() whether to call again.
  std::optional<Received> try_receive();
  /// Counts a message of `peer` that turned out malformed further up; logs at 1, 2, 4, 8, ...
  void drop(const PeerId& peer, std::string_view why);

  /// Edge-triggered, as ZMQ_FD is: after every send and receive ask readable() before waiting.
  int fd() const;
  bool readable();
  enum class Wait { Readable, WakeOnly };
  /// Returns when a message can be received (unless WakeOnly), `wake_fd` is readable, or `timeout`
  /// is over.
  Status wait(Wait what, int wake_fd, Duration timeout);
  TransportStats stats() const;

 private:
  struct Impl;
  explicit RouterSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A worker's side.
class DealerSocket {
 public:
  /// Returns at once; the connection is made, and retried, in the background. With the
  /// orchestrator's key in `credentials` it is encrypted, and made to no other orchestrator.
  static Result<DealerSocket> connect(const std::string& endpoint,
                                      const TransportConfig& config,
                                      const Log& log,
                                      const Credentials& credentials = {});
  DealerSocket(DealerSocket&&) noexcept;
  DealerSocket& operator=(DealerSocket&&) noexcept;
  /// Discards what is unsent; call close() to flush.
  ~DealerSocket();

  /// False if the queue is full: nothing was taken, wait until writable. Error: a frame larger than
  /// `max_frame`.
  Result<bool> try_send(std::string_view head, const Slice& body);
  std::optional<Received> try_receive();

  enum class Wait { Readable, ReadableOrWritable };
  /// Returns when a message can be received (or sent), `wake_fd` is readable, or `timeout` is over.
  Status wait(Wait what, int wake_fd, Duration timeout);

  /// Edge-triggered, as ZMQ_FD is: after every send and receive, receive once more before waiting.
  int fd() const;
  /// How often the other side has turned its key away, on an encrypted connection.
  std::uint64_t refusals();
  /// Sends what is queued, for at most `linger`, and disconnects.
  void close(Duration linger);
  const TransportStats& stats() const;

 private:
  struct Impl;
  explicit DealerSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace temper::actors
