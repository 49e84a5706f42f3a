// The connection to the worker from which this one fetches. It is made at the first request and
// kept as long as the source is the same. One thread.
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

  /// Sends a request to the worker at `address`. Error: the address is invalid.
  Status ask(const RelayAddress& address, const FetchWeights& what);
  void close();

  struct TurnResult {
    std::vector<IncomingMessage> messages;
    bool alive = false;    ///< The source sent something.
    bool sent = false;     ///< Something was sent: call turn() again before waiting.
    bool refused = false;  ///< The source refused our key or violated the protocol; the connection
                           ///< is closed.
  };
  /// Reads and sends without blocking.
  TurnResult turn();
  /// Edge-triggered: call turn() until it does nothing before waiting. Empty if not connected.
  std::optional<int> fd() const;

 private:
  Status take(Received received, TurnResult& result);

  const KeyPair own_;
  const TransportConfig transport_;
  const Log& log_;
  std::optional<DealerSocket> socket_;
  RelayAddress address_;
  OutgoingStream outgoing_;
  std::optional<Reassembler> reassembler_;
  bool open_ = false;  ///< The source has answered.
  std::optional<FetchWeights> question_;
};

}  // namespace temper::actors
