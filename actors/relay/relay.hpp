// Passes weights on from worker to worker. Each attached worker has one: it listens for workers
// that the orchestrator sends to it, fetches each version from whom the orchestrator names, and
// passes every chunk on as soon as it is here. A version that is whole and has the right checksum
// is given to the role as weights in this process's memory.
//
// A thread of its own does the work (relay_loop.hpp): the role may be busy for as long as it likes.
// The newest version stays in memory until the next one begins to arrive.
#pragma once

#include "actors/protocol/weights.hpp"
#include "actors/transport/message.hpp"
#include "actors/transport/transport_config.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"

#include <functional>
#include <memory>

namespace temper::actors {

class Relay {
 public:
  /// Listens at the address from which this host reaches the orchestrator, a TCP endpoint, on a
  /// free port, with CURVE. `clock` outlives it. Errors: no such address, no port.
  static Result<std::unique_ptr<Relay>> open(const std::string& orchestrator,
                                             const TransportConfig& transport,
                                             const Clock& clock,
                                             const Log& log);
  /// Waits for its thread.
  ~Relay();

  const RelayAddress& address() const;

  /// Both are called on the relay's thread, and return at once.
  struct Ends {
    std::function<void(IncomingMessage)> role;          ///< weights.stage of a whole image.
    std::function<void(OutgoingMessage)> orchestrator;  ///< weights.fetch, weights.staged.
  };
  /// An orchestrator has welcomed this worker. Whom it is to feed, that one will say.
  void begin(Ends ends, Duration timeout);
  /// The connection is over: `ends` are not called any more.
  void end();
  /// Takes a message of the orchestrator if it is for the relay; false: it is the role's.
  bool take(const IncomingMessage& message);

 private:
  struct Impl;
  explicit Relay(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace temper::actors
