// The live driver, on processes that fail by plan (fault_player.hpp).
#include "orchestrator/run/live/live_driver.hpp"
#include "orchestrator/run/live/loop.hpp"

#include <algorithm>

namespace temper::orchestrator {

Status LiveDriver::plan_faults() {
  FaultPlayer::Hands hands;
  hands.signal = [this](ActorId actor, int number) { launched_->signal(actor, number); };
  hands.mend = [this](ActorId actor) { mend_link(actor); };
  hands.start = [this](ActorId actor) { launched_->start_put_off(actor); };
  hands.now = [this] { return clock_->now(); };
  TEMPER_TRY(faults_, FaultPlayer::create(loop_->io, options_.pipeline, std::move(hands), log_));
  const auto& actors = scheduler_config_.actors;
  const auto attached = std::ranges::find_if(actors, &ActorSpec::attached);
  if (faults_ && attached != actors.end()) {
    return invalid_input(
        "simulation.faults.trace: failures are played on processes that the run starts; " +
        attached->name + " is started by others (launch: attach)");
  }
  return {};
}

LiveDriver::CutOff& LiveDriver::cut_off(ActorId actor, const actors::PeerId& worker) {
  CutOff& held = cut_off_[actor];
  if (held.worker != worker)
    held = {worker, {}, {}};
  return held;
}

/// What was held goes on, in the order in which it was said, unless its worker was replaced.
void LiveDriver::mend_link(ActorId actor) {
  auto node = cut_off_.extract(actor);
  const actors::PeerId* worker = connections_.peer_of(actor);
  if (node.empty() || worker == nullptr || node.mapped().worker != *worker)
    return;
  for (actors::OutgoingMessage& message : node.mapped().to)
    send_message(actor, std::move(message));
  for (const actors::IncomingMessage& message : node.mapped().from)
    on_message(node.mapped().worker, message);
}

}  // namespace temper::orchestrator
