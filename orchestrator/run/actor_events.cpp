#include "orchestrator/run/actor_events.hpp"

#include "actors/protocol/catalog.hpp"

namespace temper::orchestrator {

Result<std::optional<Event>> plain_event(ActorId actor, const actors::IncomingMessage& m) {
  using Answer = std::optional<Event>;
  return actors::dispatch<Result<Answer>>(
             m,
             [&](actors::Activity a) {
               return event::Activity{actor, std::move(a.spans), std::move(a.usage)};
             },
             [&](actors::WeightsStaged staged) {
               return event::WeightsStaged{actor, staged.version, std::move(staged.error)};
             },
             [&](actors::WeightsCommitted committed) {
               return event::WeightsCommitted{actor, committed.version, std::move(committed.error)};
             },
             [&](actors::Switched switched) {
               return event::Switched{
                   actor, switched.action, switched.cost, std::move(switched.error)};
             },
             [&](const actors::Prepared& prepared) {
               return event::Prepared{actor, prepared.lease};
             },
             [&](actors::StateSaved saved) {
               return event::CheckpointSaved{saved.version, std::move(saved.error)};
             })
      .value_or(Answer());
}

}  // namespace temper::orchestrator
