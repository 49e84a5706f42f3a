#include "orchestrator/run/live/fault_injection.hpp"

#include <algorithm>
#include <utility>

namespace temper::orchestrator {

Status FaultInjection::plan(boost::asio::io_context& io,
                            const ResolvedPipeline& pipeline,
                            Effects effects,
                            const Log& log) {
  FaultPlayer::Effects on;
  on.signal = std::move(effects.signal);
  on.start = std::move(effects.start);
  on.now = std::move(effects.now);
  on.mend = [this, mend = std::move(effects.mend)](ActorId actor) {
    if (auto held = held_.extract(actor); !held.empty())
      mend(actor, std::move(held.mapped()));
  };
  TEMPER_TRY(player_, FaultPlayer::create(io, pipeline, std::move(on), log));
  const auto attached = std::ranges::find_if(pipeline.slots, &ActorSpec::attached);
  if (player_ && attached != pipeline.slots.end()) {
    return invalid_input(
        "simulation.faults.trace: failures are played on processes that the run starts; " +
        attached->name + " is started by others (launch: attach)");
  }
  return {};
}

void FaultInjection::begin() {
  if (player_)
    player_->begin();
}

void FaultInjection::end() {
  if (player_)
    player_->end();
}

void FaultInjection::drop_start(ActorId actor) {
  if (player_)
    player_->drop(actor);
}

/// Messages of a worker that was replaced are dropped.
FaultInjection::HeldMessages& FaultInjection::held_of(ActorId actor, const actors::PeerId& worker) {
  HeldMessages& held = held_[actor];
  if (held.worker != worker)
    held = {worker, {}, {}};
  return held;
}

void FaultInjection::hold(ActorId actor,
                          const actors::PeerId& worker,
                          const actors::IncomingMessage& message) {
  held_of(actor, worker).from.push_back(message);
}

void FaultInjection::hold(ActorId actor,
                          const actors::PeerId& worker,
                          actors::OutgoingMessage message) {
  held_of(actor, worker).to.push_back(std::move(message));
}

}  // namespace temper::orchestrator
