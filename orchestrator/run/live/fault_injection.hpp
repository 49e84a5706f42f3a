// Fault injection in a run on this machine: plays the planned failures on the workers' processes
// (fault_player.hpp), and holds the messages of workers whose link is cut.
#pragma once

#include "actors/transport/message.hpp"
#include "actors/transport/socket.hpp"
#include "orchestrator/run/live/fault_player.hpp"

#include <deque>
#include <map>
#include <memory>

namespace temper::orchestrator {

class FaultInjection {
 public:
  /// The messages of a worker whose link was cut, in order.
  struct HeldMessages {
    actors::PeerId worker;
    std::deque<actors::IncomingMessage> from;
    std::deque<actors::OutgoingMessage> to;
  };
  struct Effects {
    std::function<void(ActorId, int number)> signal;  ///< To the actor's process.
    std::function<void(ActorId)> start;  ///< The start was put off, and its cards are usable now.
    std::function<void(ActorId, HeldMessages)> mend;  ///< The link works again.
    std::function<Time()> now;
  };

  /// Reads the plan; without one nothing fails. `io` outlives this. Errors: as FaultPlan::create();
  /// failures are planned, and the run has workers that it does not start.
  Status plan(boost::asio::io_context& io,
              const ResolvedPipeline& pipeline,
              Effects effects,
              const Log& log);

  /// Plays the plan from here on. Failures before now, of a resumed run, count as played.
  void begin();
  /// Nothing fails any more, and every stopped process continues.
  void end();

  /// Whether the actor's start is put off; then `start` follows, unless the start is dropped.
  bool puts_off(ActorId actor) { return player_ != nullptr && player_->puts_off(actor); }
  void drop_start(ActorId actor);

  bool is_cut(ActorId actor) const { return player_ != nullptr && player_->is_cut(actor); }
  /// Keeps a message until the link is repaired. Requires: is_cut().
  void hold(ActorId actor, const actors::PeerId& worker, const actors::IncomingMessage& message);
  void hold(ActorId actor, const actors::PeerId& worker, actors::OutgoingMessage message);

 private:
  HeldMessages& held_of(ActorId actor, const actors::PeerId& worker);

  std::unique_ptr<FaultPlayer> player_;  ///< Null: nothing is planned.
  std::map<ActorId, HeldMessages> held_;
};

}  // namespace temper::orchestrator
