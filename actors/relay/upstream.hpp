// The connection to the worker that this one is fed by: made when it is first asked, kept while it
// stays the same one. One thread.
#pragma once

#include "actors/protocol/weights.hpp"
#include "actors/transport/credentials.hpp"
#include "actors/transport/socket.hpp"
#include "actors/transport/stream.hpp"
#include "core/clock.hpp"

#include <optional>
#include <vector>

namespace temper::actors {

class Upstream {
 public:
  Upstream(KeyPair own, TransportConfig transport, const Log& log)
      : own_(std::move(own)), transport_(transport), log_(log) {}

  /// Asks the worker at `address`. Error: there can be no such connection.
  Status ask(const RelayAddress& address, const FetchWeights& what);
  void close();

  struct Came {
    std::vector<IncomingMessage> messages;
    bool alive = false;    ///< Something was heard.
    bool sent = false;     ///< Something was sent: come again before waiting.
    bool refused = false;  ///< It does not let us in, or sent what cannot be: closed.
  };
  /// Reads, sends, and is done; waits for nothing.
  Came turn();
  /// Edge-triggered: call turn() until it has nothing before waiting. None: not connected.
  std::optional<int> fd() const;

 private:
  Status take(Received received, Came& came);

  const KeyPair own_;
  const TransportConfig transport_;
  const Log& log_;
  std::optional<DealerSocket> socket_;
  RelayAddress address_;
  OutgoingStream outgoing_;
  std::optional<Reassembler> reassembler_;
  bool open_ = false;  ///< It has answered.
  std::optional<FetchWeights> question_;
};

}  // namespace temper::actors
