// Runs an Exchange on its own thread for an Asio event loop. However long the loop is busy
// (encoding a batch, writing a checkpoint), workers get heartbeats, their heartbeats are recorded,
// and queued messages are sent. All calls and callbacks are on the thread that runs the loop.
#pragma once

#include "actors/transport/exchange.hpp"

#include <functional>

namespace boost::asio {
class io_context;
}

namespace temper::actors {

class AsioRouter {
 public:
  struct Events {
    /// A message from an admitted peer, or actor.hello from any peer.
    std::function<void(const PeerId&, const IncomingMessage&)> on_message;
    /// An admitted peer disconnected, does not read, or violated the protocol.
    std::function<void(const PeerId&, const std::string& why)> on_broken;
    /// actor.hello from a peer whose key was let in as `user`; if unset, it goes to on_message.
    std::function<void(const PeerId&, const std::string& user, const IncomingMessage&)> on_hello{};
    /// The latest heartbeat of an admitted peer since the loop last turned; may be unset.
    std::function<void(const PeerId&, const IncomingMessage&)> on_heartbeat{};
  };

  /// Starts receiving. `io` must outlive the router. A callback may call any function here, but
  /// must not destroy the router or the loop. Error Io: no file descriptors left.
  static Result<std::unique_ptr<AsioRouter>> create(boost::asio::io_context& io,
                                                    RouterSocket socket,
                                                    Exchange::Options options,
                                                    Events events,
                                                    const Log& log);
  /// Hands over messages that are still queued. No callback runs afterwards.
  ~AsioRouter();

  /// See RouterSocket: controls which keys may connect, if the socket has a key.
  void let_in(const std::string& open_key, const std::string& name, std::size_t connections = 1);
  void keep_out(const std::string& open_key);

  /// Accepts messages from the peer and sends it heartbeats from now on.
  void admit(const PeerId& peer);
  void forget(const PeerId& peer);
  /// Queues a message of any size and returns.
  void send(const PeerId& peer, OutgoingMessage message);
  /// Time since the peer was last heard; zero for a peer that is not admitted.
  Duration silence_of(const PeerId& peer) const;
  /// How far the peer's clock is ahead of `ours`; empty if the peer is not admitted or the offset
  /// is not known yet.
  std::optional<ClockReading> clock_of(const PeerId& peer, const RealClock& ours) const;
  /// See RouterSocket::drop().
  void drop(const PeerId& peer, std::string_view why);
  /// Reports that the event loop is alive. Workers get heartbeats for ten minutes after each call,
  /// whatever the loop does meanwhile.
  void turns();
  const std::string& endpoint() const;
  TransportStats stats() const;

 private:
  struct Impl;
  explicit AsioRouter(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace temper::actors
