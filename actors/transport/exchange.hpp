// The orchestrator's end of all connections: one socket, and an outgoing stream and a reassembler
// for each admitted peer. Sends heartbeats and records when each peer was last heard.
//
// A peer that is not admitted can only send actor.hello, with the name to which its key was issued.
// A key whose name starts with kAttachedUser belongs to no actor slot; the orchestrator decides
// which slot such a peer gets. Not thread-safe: one thread at a time.
#pragma once

#include "actors/transport/clock_estimate.hpp"
#include "actors/transport/stream.hpp"
#include "core/clock.hpp"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace temper::actors {

/// Liveness of a peer. Written by the thread of the exchange, read by any thread.
struct PeerLiveness {
  explicit PeerLiveness(Time now) : heard(now.time_since_epoch().count()) {}
  std::atomic<std::int64_t> heard;  ///< When the peer was last heard: nanoseconds on the exchange's
                                    ///< clock.
  ClockEstimate clock;              ///< Offset from the exchange's clock.
};
using PeerLivenessPtr = std::shared_ptr<PeerLiveness>;

/// First character of the name of an attached worker's key.
inline constexpr char kAttachedUser = '@';

class Exchange {
 public:
  struct Options {
    Duration heartbeat = std::chrono::milliseconds(250);
    Bytes max_message = TransportConfig{}.max_message;
  };
  struct Arrival {
    PeerId peer;
    IncomingMessage message;
    std::string user{};  ///< With actor.hello: the name to which the peer's key was issued.
  };
  /// A peer whose connection has ended; nothing more is sent to or received from it.
  struct BrokenPeer {
    PeerId peer;
    std::string why;
  };
  struct TurnResult {
    std::vector<Arrival> arrived;     ///< All but heartbeats.
    std::vector<Arrival> heartbeats;  ///< Of admitted peers.
    std::vector<BrokenPeer> broken;
    bool more = false;  ///< More messages may be waiting: call turn() again at once.
  };

  /// `clock` must outlive the exchange.
  Exchange(RouterSocket socket, Options options, const Clock& clock);

  /// Accepts messages from the peer and sends it heartbeats from now on. Idempotent.
  void admit(const PeerId& peer, PeerLivenessPtr liveness);
  void forget(const PeerId& peer);
  /// Queues a message. For a peer that is not admitted, sends one small message (a rejection)
  /// directly.
  void send(const PeerId& peer, OutgoingMessage message);
  /// Messages for the peer that wait to be sent, except urgent ones.
  std::size_t waiting(const PeerId& peer) const;
  /// Counts a malformed message like RouterSocket::drop(), except messages that a known peer had
  /// sent before its connection ended.
  void drop(const PeerId& peer, std::string_view why);

  /// Paused: incoming messages stay in the sockets, and every peer counts as heard.
  enum class Reading { On, Paused };
  enum class Heartbeats { On, Off };
  /// Reads and sends without blocking.
  TurnResult turn(Reading reading, Heartbeats heartbeats);
  /// Blocks until a message arrives, `wake_fd` is readable, a heartbeat is due, or `at_most` has
  /// passed. Error: Io.
  Status wait(Reading reading, int wake_fd, Duration at_most = Duration::max());

  const std::string& endpoint() const { return socket_.endpoint(); }
  TransportStats stats() const { return socket_.stats(); }

  /// See RouterSocket. Thread-safe.
  void let_in(const std::string& open_key, const std::string& name, std::size_t connections = 1) {
    socket_.let_in(open_key, name, connections);
  }
  void keep_out(const std::string& open_key) { socket_.keep_out(open_key); }

 private:
  struct Peer {
    OutgoingStream outgoing;
    Reassembler reassembler;
    PeerLivenessPtr liveness;
  };
  void read(TurnResult& result);
  void take(Received received, TurnResult& result);
  Status take_from(Peer& peer, const PeerId& id, const IncomingMessage& part, TurnResult& result);
  void send_queued(TurnResult& result);
  void break_off(const PeerId& peer, std::string why, TurnResult& result);
  void remove(const PeerId& peer);

  RouterSocket socket_;
  const Options options_;
  const Clock& clock_;
  std::map<PeerId, Peer> peers_;
  std::deque<PeerId> gone_;  ///< Peers that were admitted and have ended; the latest kGoneKept.
  Time next_heartbeat_{};
};

}  // namespace temper::actors
