// An Exchange for an Asio loop, on a thread of its own: however long the loop is busy (a batch that
// is encoded, a checkpoint that reaches the disk), workers get heartbeats, theirs are noted, and
// what was handed over for sending goes on leaving. All calls, and the callbacks, on the thread
// that runs the loop.
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
    /// From a peer that is admitted, or actor.hello from anyone.
    std::function<void(const PeerId&, const IncomingMessage&)> on_message;
    /// The peer, which was admitted, is gone, does not read, or says what cannot be.
    std::function<void(const PeerId&, const std::string& why)> on_broken;
    /// actor.hello, of a peer whose key was let in as `user`; unset: it goes to on_message.
    std::function<void(const PeerId&, const std::string& user, const IncomingMessage&)> on_hello{};
  };

  /// Receives from now on. `io` outlives this; a callback may call anything here, and may destroy
  /// neither this nor the loop. Error: no descriptors left.
  static Result<std::unique_ptr<AsioRouter>> create(boost::asio::io_context& io,
                                                    RouterSocket socket,
                                                    Exchange::Options options,
                                                    Events events,
                                                    const Log& log);
  /// Hands over what is left to be sent; no callback runs after it.
  ~AsioRouter();

  /// As of RouterSocket: who may connect at all, if the socket has a key.
  void let_in(const std::string& open_key, const std::string& name, std::size_t connections = 1);
  void keep_out(const std::string& open_key);

  /// From here on its messages count, and it gets heartbeats.
  void admit(const PeerId& peer);
  void forget(const PeerId& peer);
  /// Queues a message of any size and returns.
  void send(const PeerId& peer, OutgoingMessage message);
  /// How long nothing came from the peer. Zero for one that is not admitted.
  Duration silence_of(const PeerId& peer) const;
  /// How far the peer's clock is ahead of ours. None: not admitted, or it has not said.
  std::optional<ClockReading> clock_of(const PeerId& peer, const RealClock& ours) const;
  /// Counts a malformed message, as RouterSocket::drop does.
  void drop(const PeerId& peer, std::string_view why);
  /// The loop turns: for ten minutes from here workers hear that we live, whatever it does.
  void turns();
  const std::string& endpoint() const;
  TransportStats stats() const;

 private:
  struct Impl;
  explicit AsioRouter(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace temper::actors
