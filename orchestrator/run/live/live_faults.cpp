// The live driver, on processes that fail by plan (fault_player.hpp).
#include "orchestrator/run/live/live_driver.hpp"

#include "actors/asio/asio.hpp"

namespace temper::orchestrator {

Status LiveDriver::plan_faults(boost::asio::io_context& loop) {
  FaultPlayer::Hands hands;
  hands.signal = [this](ActorId actor, int number) {
    supervisor_->signal(scheduler_config_.actors[actor.value()].name, number);
  };
  hands.mend = [this](ActorId actor) { mend_link(actor); };
  hands.start = [this](ActorId actor) { start_process(actor); };
  hands.now = [this] { return clock_->now(); };
  TEMPER_TRY(faults_, FaultPlayer::create(loop, options_.pipeline, std::move(hands), log_));
  return {};
}

/// What was held goes on, in the order in which it was said.
void LiveDriver::mend_link(ActorId actor) {
  const auto node = held_.extract(actor);
  if (node.empty())
    return;
  for (actors::OutgoingMessage& message : node.mapped().to)
    send_message(actor, std::move(message));
  for (const auto& [peer, message] : node.mapped().from)
    on_message(peer, message);
}

}  // namespace temper::orchestrator
