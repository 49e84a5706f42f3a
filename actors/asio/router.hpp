// A RouterSocket on an Asio loop. All calls, and the callback, on the thread that runs the loop.
#pragma once

#include "actors/transport/socket.hpp"

#include <functional>

namespace boost::asio {
class io_context;
}

namespace temper::actors {

class AsioRouter {
 public:
  /// Receives from now on. `io` outlives this; `on_message` may call send(), and may destroy
  /// neither this nor the loop.
  AsioRouter(boost::asio::io_context& io,
             RouterSocket socket,
             std::function<void(Received)> on_message);
  /// No callback runs after it.
  ~AsioRouter();

  /// Sends a message, as RouterSocket::send does.
  Status send(const PeerId& peer, std::string head, std::string body);
  /// Counts a malformed message, as RouterSocket::drop does.
  void drop(const PeerId& peer, std::string_view why);
  const std::string& endpoint() const;
  const TransportStats& stats() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace temper::actors
