#include "orchestrator/run/live/worker_clocks.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// The time that a worker reports may be any number.
Time set_back(Time said, Duration ahead) {
  constexpr Time kFarthest{Duration(Duration::rep{1} << 61)};
  return std::clamp(said, Time(-kFarthest.time_since_epoch()), kFarthest) - ahead;
}

}  // namespace

void WorkerClocks::read() {
  for (std::uint32_t i = 0; i < recorded_.size() && !core_.finished(); ++i) {
    if (core_.actor(ActorId(i)).attached)
      read(ActorId(i));
  }
}

/// A reading is recorded if the recorded one is outside its error, or twice as inexact.
void WorkerClocks::read(ActorId actor) {
  const actors::PeerId* peer = links_.connections().peer_of(actor);
  const auto reading = peer == nullptr ? std::nullopt : links_.router().clock_of(*peer, clock_);
  if (!reading)
    return;
  auto& recorded = recorded_[actor.value()];
  const bool holds = recorded.error > Duration(0) &&
                     std::chrono::abs(reading->ahead - recorded.ahead) <= reading->error &&
                     reading->error * 2 > recorded.error;
  if (holds)
    return;
  recorded = *reading;
  core_.post(event::ClockRead{actor, recorded.ahead, recorded.error});
}

void WorkerClocks::fit(event::Activity& said) const {
  const Time now = core_.now();
  const Duration ahead = recorded_[said.actor.value()].ahead;
  Time from = core_.state().fleet.state(said.actor).busy_until;
  for (actors::Span& span : said.spans) {
    span.begin = std::clamp(set_back(span.begin, ahead), from, std::max(from, now));
    span.end = std::clamp(set_back(span.end, ahead), span.begin, std::max(span.begin, now));
    from = span.end;
  }
}

}  // namespace temper::orchestrator
