// The actors of a simulated run: their host, the messages that they have not taken yet, and when
// each acts next. Actors act in the order of their ids.
#pragma once

#include "orchestrator/run/virtual/actor_host.hpp"
#include "sim_hw/events/event_queue.hpp"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace temper::orchestrator {

class SimulatedFleet {
 public:
  SimulatedFleet(std::unique_ptr<ActorHost> host, std::size_t actors);

  bool can_lose() const { return host_->can_lose(); }
  bool is_launched(ActorId actor) const { return launched_[actor.value()]; }
  std::vector<ActorId> launched() const;

  /// The actor starts when actors with mail act. Error: it cannot be made.
  Status launch(ActorId actor, const actors::RoleConfig& role);
  /// Nothing of the actor remains, and no message reaches it. Requires: can_lose().
  void lose(ActorId actor, Time now);
  /// As ActorHost::slow_down().
  void slow_down(ActorId actor, Time now, std::int64_t times, Time until);
  /// A message to an actor that is not launched is lost: its hardware failed at this very time.
  template <class M>
  void send(ActorId actor, M message) {
    if (!is_launched(actor))
      return;
    note_mail(actor);
    host_->deliver(actor,
                   host_->form() == actors::Outbox::Form::Value
                       ? actors::outgoing_value(std::move(message))
                       : actors::outgoing(message));
  }

  bool has_mail() const { return !addressed_.empty(); }
  /// When an actor acts by itself next.
  std::optional<Time> next_event() const { return next_events_.time(); }

  struct Acted {
    std::vector<ActorHost::Arrival> arrivals;  ///< What the actors say.
    Status status;                             ///< Error: an actor failed.
  };
  /// The actors with mail take it.
  Acted take_mail(Time now);
  /// The actors whose next event is the earliest act. Requires: next_event() is `now`.
  Acted act(Time now);
  /// All actors end. Returns what they say last.
  std::vector<ActorHost::Arrival> finish(Time now);

 private:
  void note_mail(ActorId actor);
  Acted advance(Time now);

  std::unique_ptr<ActorHost> host_;
  sim_hw::EventQueue next_events_;  ///< By actor.
  std::vector<ActorId> addressed_;  ///< The actors with mail.
  std::vector<bool> has_mail_;      ///< By actor.
  std::vector<bool> launched_;      ///< By actor.
  std::vector<ActorId> acting_;
};

}  // namespace temper::orchestrator
