// The orchestrator's end of all its connections: one socket, and for each peer that was admitted a
// lane out and an intake. Sends heartbeats, and notes when a peer was last heard.
//
// A peer that is not admitted can do one thing: say actor.hello, by the name that its key was
// handed out to. A key of kAttachedUser was handed out to no slot; what it may be, the orchestrator
// knows. One thread at a time.
#pragma once

#include "actors/transport/clock_estimate.hpp"
#include "actors/transport/lane.hpp"
#include "core/clock.hpp"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace temper::actors {

/// What is known of a peer; written by the exchange's thread, read by any.
struct PeerSigns {
  explicit PeerSigns(Time now) : heard(now.time_since_epoch().count()) {}
  std::atomic<std::int64_t> heard;  ///< Nanoseconds on the exchange's clock.
  ClockEstimate clock;              ///< Against the exchange's clock.
};
using PeerSignsPtr = std::shared_ptr<PeerSigns>;

/// Begins the name under which the key of an attached worker is let in.
inline constexpr char kAttachedUser = '@';

class Exchange {
 public:
  struct Options {
    Duration heartbeat = std::chrono::milliseconds(250);
    Bytes max_message = TransportConfig{}.max_message;
  };
  struct Arrived {
    PeerId peer;
    IncomingMessage message;
    std::string user{};  ///< Of actor.hello: whom its key was handed out to.
  };
  /// Nothing goes to this peer, or comes from it, any more.
  struct Broken {
    PeerId peer;
    std::string why;
  };
  struct Moved {
    std::vector<Arrived> arrived;
    std::vector<Broken> broken;
    bool more = false;  ///< There may be more to read: come again at once.
  };

  /// `clock` outlives this.
  Exchange(RouterSocket socket, Options options, const Clock& clock);

  /// From here on the peer's messages count, and it gets heartbeats. Once more: no change.
  void admit(const PeerId& peer, PeerSignsPtr signs);
  void forget(const PeerId& peer);
  /// To a peer that is not admitted one small message may be sent: why not.
  void send(const PeerId& peer, OutgoingMessage message);
  /// Counts a malformed message, as RouterSocket::drop does; not the last words of a peer that was
  /// admitted once and whose end is known: they were on their way.
  void drop(const PeerId& peer, std::string_view why);

  /// Paused: what has come is left with the sockets, and every peer counts as heard.
  enum class Reading { On, Paused };
  enum class Heartbeats { On, Off };
  /// Reads, sends, and is done; waits for nothing.
  Moved turn(Reading reading, Heartbeats heartbeats);
  /// Until there is something to do, `wake_fd` is readable, a heartbeat is due, or `at_most` is
  /// over.
  Status wait(Reading reading, int wake_fd, Duration at_most = Duration::max());

  const std::string& endpoint() const { return socket_.endpoint(); }
  TransportStats stats() const { return socket_.stats(); }

  /// As of RouterSocket; from any thread.
  void let_in(const std::string& open_key, const std::string& name, std::size_t connections = 1) {
    socket_.let_in(open_key, name, connections);
  }
  void keep_out(const std::string& open_key) { socket_.keep_out(open_key); }

 private:
  struct Peer {
    Lane lane;
    Intake intake;
    PeerSignsPtr signs;
  };
  void read(Moved& moved);
  void take(Received received, Moved& moved);
  Status take_from(Peer& peer, const PeerId& id, const IncomingMessage& part, Moved& moved);
  void send_what_fits(Moved& moved);
  void break_off(const PeerId& peer, std::string why, Moved& moved);
  void remove(const PeerId& peer);

  RouterSocket socket_;
  const Options options_;
  const Clock& clock_;
  std::map<PeerId, Peer> peers_;
  std::deque<PeerId> gone_;  ///< Admitted once; the last that ended, at most kGoneKept.
  Time next_heartbeat_{};
};

}  // namespace temper::actors
