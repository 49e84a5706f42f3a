// Relays weights between workers. Each attached worker has a relay. It fetches each version from
// the sources that the orchestrator names, and forwards every chunk, as soon as it arrives, to the
// workers that the orchestrator admits. Once a version is complete and verified, the role gets it
// as weights in this process's memory. A trainer's relay has each version that the trainer
// publishes, and sends it to the first workers, and to the orchestrator on request.
//
// The work is done on a separate thread (relay_loop.hpp), so a busy role delays no other worker.
// The newest version stays in memory until the next one starts to arrive.
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
  /// Listens on a free port of the address from which this host reaches the orchestrator (a TCP
  /// endpoint), with CURVE. `clock` must outlive the relay. Errors: no such address, no free port.
  static Result<std::unique_ptr<Relay>> open(const std::string& orchestrator,
                                             const TransportConfig& transport,
                                             const Clock& clock,
                                             const Log& log);
  /// Joins the thread.
  ~Relay();

  const RelayAddress& address() const;

  /// Both are called on the relay's thread and must return quickly.
  struct Sinks {
    std::function<void(IncomingMessage)> role;          ///< Receives weights.stage of complete
                                                        ///< images.
    std::function<void(OutgoingMessage)> orchestrator;  ///< Receives weights.fetch and
                                                        ///< weights.staged.
  };
  /// Starts relaying after an orchestrator has welcomed this worker; that orchestrator then names
  /// the workers to feed. `timeout`: how long a source may be silent.
  void begin(Sinks sinks, Duration timeout);
  /// The connection to the orchestrator has ended: `sinks` is not called any more.
  void end();
  /// Handles a message of the orchestrator. Returns false if it is for the role.
  bool take(const IncomingMessage& message);
  using Send = std::function<void(OutgoingMessage)>;
  /// Passes a message of the role to `send`, on the calling thread. Weights in this process's
  /// memory, which others cannot map, are announced as sent on request, or followed by their only
  /// chunk.
  void publish(OutgoingMessage message, const Send& send);

 private:
  template <class Announcement>
  Status publish_as(const OutgoingMessage& message, const Send& send);
  struct Impl;
  explicit Relay(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace temper::actors
