// The connections of a run on the wall clock: the socket, which worker is connected for which
// actor, and messages in both directions.
#pragma once

#include "actors/asio/router.hpp"
#include "actors/transport/message.hpp"
#include "orchestrator/run/core/run_core.hpp"
#include "orchestrator/run/live/fault_injection.hpp"
#include "orchestrator/run/processes/connections.hpp"
#include "orchestrator/run/processes/launch.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace temper::orchestrator {

class ActorLinks {
 public:
  struct Events {
    /// From an actor whose worker is admitted.
    std::function<void(ActorId, const actors::IncomingMessage&)> on_message;
    /// A worker asks to be admitted; its key was let in as `user`.
    std::function<void(
        const actors::PeerId&, const std::string& user, const actors::IncomingMessage&)>
        on_hello;
    /// The connection of an actor's worker broke.
    std::function<void(ActorId, const actors::PeerId&, const std::string& why)> on_broken;
  };
  /// The references outlive this.
  ActorLinks(RunCore& core, FaultInjection& faults, LaunchCredentials credentials);

  /// Binds the socket; messages come from here on. `io` outlives this. Errors: InvalidInput for an
  /// invalid address; Io if it cannot be bound or no descriptor is left.
  Status bind(boost::asio::io_context& io,
              const TransportSection& transport,
              Events events,
              const Log& log);
  /// Sends what is left to be sent; no event comes after it.
  void close() { router_.reset(); }

  // --- Requires: bind().
  actors::AsioRouter& router() { return *router_; }
  Connections& connections() { return connections_; }
  const Connections& connections() const { return connections_; }
  LaunchCredentials& credentials() { return credentials_; }
  bool is_connected(ActorId actor) const { return connections_.peer_of(actor) != nullptr; }

  /// A message to an actor that is not connected is lost; that its worker is lost is an event.
  template <class M>
  void send(ActorId actor, const M& message) {
    send_message(actor, actors::outgoing(message));
  }
  void send_message(ActorId actor, actors::OutgoingMessage message);
  /// The link of an actor works again: the held messages continue, unless its worker was replaced.
  void deliver_held(ActorId actor, FaultInjection::HeldMessages held);

  /// Tells workers that this process lives, and returns the actors that were silent for `timeout`.
  std::vector<ActorId> silent_for(Duration timeout, Time now);

  // --- Commands that are a message and nothing else.
  void execute(const command::Cancel& c);
  void execute(const command::Withdraw& c);
  void execute(const command::Switch& c);
  void execute(const command::SaveCheckpoint& c);

 private:
  void receive(const actors::PeerId& peer, const actors::IncomingMessage& message);

  RunCore& core_;
  FaultInjection& faults_;
  LaunchCredentials credentials_;
  Connections connections_;
  Events events_;
  std::unique_ptr<actors::AsioRouter> router_;
};

}  // namespace temper::orchestrator
